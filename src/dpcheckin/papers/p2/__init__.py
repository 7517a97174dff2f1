"""P2: Balle et al., Privacy Amplification via Random Check-Ins (arXiv 2007.06605v2)."""
