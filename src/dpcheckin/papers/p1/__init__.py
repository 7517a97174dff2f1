"""P1: Liew, Hasegawa and Takahashi, Privacy Amplification via Shuffled Check-Ins."""
