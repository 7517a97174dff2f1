"""P3: Girgis, Data and Diggavi, the subsampled shuffle model (arXiv 2107.08763v1)."""
