"""Stores: memory (tests, trials), SQLite (one front end, the default), PostgreSQL (several)."""
