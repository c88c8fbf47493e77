"""Texts to vectors: a small model that runs here, or any endpoint that speaks OpenAI's embeddings."""
