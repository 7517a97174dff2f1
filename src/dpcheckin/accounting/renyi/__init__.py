"""Rényi curves: of the theorem's own pair, of sums, after sampling, and their conversion."""
