"""Collectors: one module per profiler, each split into argv, run and parse."""
