"""What is derived from the log, and who runs it.

`base` (the `Projection` type) · `runner`, `lanes` (who runs them: cursors, fairness, retry, backlog) · the projections,
in the order in which they follow each other: `search_index` (over `indexes`), `links`, `embeddings` (by `embedders`),
`session_state`, `summaries` (`summary_drafts` makes one, `summary_writer` knows who writes, `paid_answers` what that
cost, `summary_rewrites` has what a lesser one wrote written again, `model_statements` keeps what a model found in a
stretch), `summary_files`, `contexts`, `tiers`, `lessons`, `wiki`. Each has one row in `api.background`.
"""
