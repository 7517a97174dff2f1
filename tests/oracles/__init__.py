"""Slow, plain references that the fast accounting is judged by.

Nothing here uses the package, except `standing` and `explore`, which hold the two side by side.
"""
