"""Memories from elsewhere: what other programs wrote, told to a provider through its own verbs."""
