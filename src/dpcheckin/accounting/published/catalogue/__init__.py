"""The catalogue: one entry per published bound, by what it is about."""
