"""What stays true over time: what replaces what."""
