"""Random small runs, and the package's answers to them held against the exact enumeration.

`randomizers` draws a local pair together with the matrices it stands for, `protocols` a round with
the families of what the analyzer can see, `cases` a whole run, and `checks` compares. The standing
test runs a few hundred cases of each kind, `explore.py` as many as there is time for.
"""
