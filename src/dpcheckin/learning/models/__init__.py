"""Built-in networks, and features learned from public data."""
