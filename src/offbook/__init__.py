"""Offbook."""
