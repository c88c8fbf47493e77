"""Harm done on purpose, and the reckoning after it. The acceptance tests run the same, smaller."""
