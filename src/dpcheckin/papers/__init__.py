"""What others printed: one folder per paper, the catalogue, figures, training runs, utility."""
