"""What is done in the background: indexes follow the log, sessions are attended to and summarised, memory ages.

`indexes` (each agent's index, in step with its log) · `linking` (what a new message replaces) · `embedders` (which
model, and moving to another) · `embedding` (vectors for what has none) · `attending` (working state, topics and anchors
of a session, as notes of it) · `compressing` (summaries; `drafting` makes one, `writing` knows who writes, `rewriting`
has what a lesser one wrote written again, `summary_files` makes files of them) · `ageing` (offload) · `background` (all
in `turns`) · `threads` (work that is seen to its end).
"""
