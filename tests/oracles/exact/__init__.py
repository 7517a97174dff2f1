"""The true privacy loss of whole small runs, by complete enumeration of what the analyzer sees.

Nothing here knows a theorem of the package. A randomizer is a stochastic matrix (rows = inputs,
columns = outputs); a round is the family of all pairs of laws that two neighbouring data sets can
produce; a run composes such families, and an adversary picks the worst pair of each round with the
past before its eyes. `checks` holds the package's public answers against that.
"""
