"""The records of a run, and which client holds which of them."""
