"""The provider from Python: verbs over a socket or TCP, and an outbox for what is only told.

`clients` is what people use (`async_client` and `blocking`; `generator` makes their methods), and `hot_swap`, a
session whose context never overflows: `slot` is what the agent runs on, `swap_question` asks, `swap_checks` judges the
answer, `own_compaction` is what is left without one, `placement` puts what a turn was prepared with in its places.
Beneath: `endpoint` (where), `transport`, `answers` and `asking`; `outgoing` and `recorder` (telling), `outbox`,
`outbox_folder` and `segment` (what is kept on disk until it has arrived), `courier`, `delivery` and `outboxes`
(bringing it there), `kept_records` and `outbox_erasing` (what is forgotten goes from there, too).
"""
