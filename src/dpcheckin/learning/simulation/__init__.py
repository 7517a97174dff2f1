"""The simulated fleet: what clients of a round do, who computes it, and the training loop."""
