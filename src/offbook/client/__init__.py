"""The provider from Python: verbs over a socket or TCP, and an outbox for what is only told.

People use `async_client` and `blocking`, whose methods `make docs` writes, and `hot_swap`, a session whose context
never overflows: `slot` is what the agent runs on, `swap_question` asks, `placement` puts a turn's memory in its places.
Beneath: `endpoint` (where), `transport` and `asking`; `recorder` (telling), `outbox`, `outbox_folder`, `outbox_intake`
and `segment` (what is kept on disk until it has arrived), `courier`, `delivery` and `outboxes` (bringing it there),
`outbox_erasing` (what is forgotten goes from there, too).
"""
