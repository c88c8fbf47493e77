"""What stays true over time, and what an agent has in mind of it. Decisions: nothing here reads a store or a clock.

What replaces what: `supersede`, with `corrections` and `facts` (`statements`, `lasting`, `clauses`).

What an agent was doing: `working_state`, a fold over the log, with `goals`, `exchanges` (calls and their results),
`effects`, `reports`, `handles`, the rules in `state_rules`, the records in `keeping`; `state_text` tells it.

What the user is on about: `topics`, a fold too, with `topic_words` and `general_words`; `anchors`, with `anchor_rules`
(`anchor_identity`, `anchor_contradiction`, `anchor_tension`) and, where these are uncertain, `anchor_prototypes`;
`anchor_text` tells them. `likeness` is what both ask of a model.

What is put into a turn: `intent` (what a prompt wants of memory), `memory_section` (the stable section),
`recall_section` (that of one turn) with `handover` (the lines that open it) and `telling` (a hit as an exchange); `ago`
says when, `quoting` keeps what others said in its place, `orders` finds what gives orders. `agents_md` is what a
workspace tells its agent of all this.
"""
