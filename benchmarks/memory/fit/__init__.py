"""How the shipped weights were fitted, and to what."""
