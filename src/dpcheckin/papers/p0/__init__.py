"""P0: Liew, Hasegawa and Takahashi, Shuffled Check-in, appendix (arXiv 2206.03151v1)."""
