"""An OpenAI-compatible proxy: any client's conversations get memory and hot swap, and the client need not know."""
