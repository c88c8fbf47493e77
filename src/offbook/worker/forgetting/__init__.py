"""Forgetting for good: `meant` finds it, `erasing` takes it out of a store, `flow` out of everything else
(`elsewhere`), `residue` and `by_place` look for what is left; `forgets` is who is asked."""
