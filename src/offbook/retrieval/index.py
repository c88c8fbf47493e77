"""The search index of one agent: files beside the store, derived from the log, mapped into memory.

`records` (files that only grow) · `rows` (what is known of each message, and its words) · `text` (which messages
hold these words) · `vectors` (which passages mean this) · `agent_index` (all of them, in step with the log).
"""
