"""Many runs over a grid of options and seeds: the grid, who plays it, its results and report."""
