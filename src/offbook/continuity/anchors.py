"""Continuity anchors (D3): who they are, what does not fit together, what is unresolved.

`fold` (message by message) · `rules` (which sentences) with `identity`, `contradiction` and `tension` · `prototypes`
(where the rules are not sure, and a model is there).
"""
