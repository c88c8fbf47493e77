"""Offbook as what a framework has a place for: a session, a store, a middleware, a hook, a capability.

Each module says in its first lines what it is for, and needs an extra: `openai-agents`, `langchain`, `langgraph`,
`pydantic-ai`. Nothing is imported here: who uses one framework need not have the others.
"""
