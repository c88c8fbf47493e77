"""Coding agents that call `offbook hook` when a session starts, a prompt is given, a turn ends.

`documents` reads what the host says, `agents` has what differs from host to host, `capture` records what is new in a
transcript (`tail` reads on from the place that `places` kept), `injecting` asks for what the agent should have in mind,
`answering` brings them together.
"""
