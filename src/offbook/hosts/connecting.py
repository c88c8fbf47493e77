"""`offbook connect`: Offbook's MCP server, and its hooks, in the configuration of a client.

`clients` is the table of clients and where their files lie; `json_config`, `hook_config` and `toml_config` change a
text so that the rest of it stays as it was; `planning` says which files change and how, `writing` shows and replaces
them.
"""
