"""What stays true over time, and how it is told: pure decisions.

`replacing` (what takes the place of what) · `state` (what the agent is doing), `topics` and `anchors` (what it is on
about), each a fold over the messages · `intent` (what a prompt wants of memory) · `telling` (the two sections of a
turn) · `keeping` (what the folds share), `likeness` (where a model helps) · `agents_md` (what an agent is
taught about it).
"""
