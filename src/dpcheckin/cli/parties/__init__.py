"""Commands of the fleets that run: the parties, the demonstration, Flower."""
