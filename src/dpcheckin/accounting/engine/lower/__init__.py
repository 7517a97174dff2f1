"""Lower bounds: exact views of particular data, made smaller where they are approximated."""
