"""The Model Context Protocol: the verbs as tools, resources and a prompt, for any client that speaks it.

`asking` is the seam (a verb and its body to its answer) · `arguments` what each tool takes · `tools` the table: a tool,
its verb, its answer · `telling` an answer as text for a model · `spoken` what was said in it, no longer than fits ·
`harmless` the words of others in it · `resources` and `prompts` · `server` puts them together · `streamable` is the
daemon's `/mcp`; `offbook mcp` serves the same over stdio. The modules that use the SDK load late: it is an extra.
"""
