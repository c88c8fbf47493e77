"""The memory as Markdown that a person reads in any editor: pages as pure functions of what is remembered (A10).

`escaping` (memory is data: nothing in it becomes a heading, a link or HTML) · `session_log` (what was said on a day) ·
`cold_page` (a message that has gone cold) · `lesson_page` (written, and read back after a person edited it) ·
`index_page` (the ways in).
"""
