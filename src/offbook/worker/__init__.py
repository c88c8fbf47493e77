"""What is done in the background: indexes follow the log, passages are embedded, memory ages.

`indexes` (each agent's index, in step with its log) · `linking` (what a new message replaces) · `embedders` (which
model, and moving to another) · `embedding` (vectors for what has none) · `ageing` (offload) · `background` (all in
turns) · `threads` (work that is seen to its end).
"""
