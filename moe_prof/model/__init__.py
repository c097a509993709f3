"""Models: figures computed from other figures, each with its source and its stated validity."""
