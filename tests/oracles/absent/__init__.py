"""Exact runs in which nobody has to be absent: full shuffles, uneven rates, windows, and their composition.

Written from the definitions of the protocols alone: nothing here knows a bound, a proof or a module of the package
beyond its front door. `attack_absent.py` holds what is computed here against what the package promises.
"""
