"""Rounds composed: statements, lower bounds, previews and inverse questions, and their gate."""
