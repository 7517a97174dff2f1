"""Kinds of questions: how values become reports, and reports an estimate with its interval."""
