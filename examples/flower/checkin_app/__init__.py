"""A Flower app for shuffled check-in: copy this folder, change the names, keep the rest."""
