"""Benchmarks of the repository: the machine's ceilings, our variants against them, and peers.

Run from the root of a checkout, each as a module: ``python -m benchmarks.roofline --help``.
"""
