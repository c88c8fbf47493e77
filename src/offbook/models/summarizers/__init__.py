"""Models that write summaries: behind an endpoint, in a process of their own here, or the host's."""
