"""Working state: the task, what is open, what was done, what runs.

`working_state` (the fold) · `rules`, `reports`, `goals` (how tasks are worded) · `exchanges`, `effects`, `handles`
(what tools did) · `text` (as the agent reads it).
"""
