"""Finding what was said: words, times, queries, and what counts as an answer."""
