"""Seats of several laws: types, their sums, and the curve of a round whose others have types."""
