"""Campaigns that try to break the provider: what they tried and found is kept for the page that tells of it."""
