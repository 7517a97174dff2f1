"""Oracles for rounds in which the other clients hold different values.

`views` enumerates what the analyzer really sees, `seats` what it would see with labelled seats,
`many` is the truth of large rounds whose other clients agree; `theorem` is the largest value over
all counts of types by brute force. `smoothing` decides exactly whether a smoothed law lies below a
smoothed mixture, `gaussian_smoothing` looks at that question for Gaussian reports on a grid.
`randomizers` makes the rows all these work on, `cells` those of Gaussian and Laplace reports;
`search` tries to break the theorem.
Nothing here imports the package.
"""
