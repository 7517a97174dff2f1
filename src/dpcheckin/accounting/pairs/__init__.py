"""What one report gives away, by kind of randomizer: the local pairs."""
