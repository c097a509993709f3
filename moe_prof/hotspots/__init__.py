"""The steps of ``hotspots``: sample, find lines, tell waiting from work, sort by phase, sum up."""
