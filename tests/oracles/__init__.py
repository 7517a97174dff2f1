"""Slow, plain references that the fast accounting is judged by; nothing here uses the package."""
