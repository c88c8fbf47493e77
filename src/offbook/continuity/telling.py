"""How memory is told to the agent, in its own voice, and so that nothing recalled can leave its place.

`told` (one memory) · `quoting`, `orders` (words of others, made harmless) · `ago` (times) · `handover` (how a
conversation goes on) · `recall_section`, `memory_section` (the two sections, within their budgets) · `anchor_lines`.
"""
