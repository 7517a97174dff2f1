"""The rounds of every protocol: who reports, and what one round reveals."""
