"""What Offbook knows of the agents' hosts that it serves: their configuration, and how to tell that all of it works."""
