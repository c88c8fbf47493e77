"""The provider from Python: verbs over a socket or TCP, and an outbox for what is only told.

People use `async_client` and `blocking`, whose methods `make docs` writes, and `hot_swap`, a session whose context
never overflows: `slot` is what the agent runs on and where a turn's memory goes, `swap_question` asks. Beneath:
`endpoint` (where), `transport`, `answers` and `asking`; `recorder` (telling), `outbox`, `outbox_folder`,
`outbox_intake` and `segment` (what is kept on disk until it has arrived), `courier`, `delivery` and `outboxes`
(bringing it there), `outbox_erasing` (what is forgotten goes from there, too).
"""
