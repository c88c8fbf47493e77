"""Forgetting for good: `selection` finds what is meant, `erase` takes it out of a store, `forgetting` out of every
projection and every copy (`external_copies`), `residue` looks for what is left; `retention` is what goes by rule."""
