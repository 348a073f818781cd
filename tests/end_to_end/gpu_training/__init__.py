"""Script of a training on a GPU."""
