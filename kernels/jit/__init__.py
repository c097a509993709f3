"""The functions of the numba variants: compile, routing, tokens and buckets, in that order."""
