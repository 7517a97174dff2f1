"""Numerics: certified curves of one round and their composition. Imports nothing above."""
