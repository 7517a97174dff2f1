"""From what is typed to what a command is given: options, numbers, folders, missing extras."""
