"""How what is remembered cools down. Pure functions; nothing is ever deleted."""
