"""The checks, one module a promise."""
