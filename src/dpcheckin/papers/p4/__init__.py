"""P4: Liew and Takahashi, Shuffle Gaussian Mechanism (arXiv 2206.09569v1)."""
