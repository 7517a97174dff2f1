"""What the five papers build on: clones, sampling alone, composition of statements."""
