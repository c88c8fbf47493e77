"""The provider from Python: verbs over a socket or TCP, and an outbox for what is only told.

`clients` is what people use. Beneath it: `endpoint` (where), `transport` and `answers` (asking);
`outgoing` and `recorder` (telling), `outbox`, `outbox_folder` and `segment` (what is kept on disk until it
has arrived), `courier`, `delivery` and `outboxes` (bringing it there).
"""
