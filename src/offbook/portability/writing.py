"""Memories for elsewhere: what an agent said and summarised, in the formats of other programs."""
