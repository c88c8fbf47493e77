"""What takes the place of what: corrections, restated facts, what holds in part.

`supersede` (the decision) · `corrections`, `facts`, `statements` (what a sentence says) · `clauses`, `lasting`.
"""
