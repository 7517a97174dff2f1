"""What other clients' reports can look like: types of the randomizers (docs/theory.md)."""
