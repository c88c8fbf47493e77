"""Histories of other programs on their way into a memory: what every importer needs.

`formats` is the table of them; a reader makes `conversations` of what it finds (`fields` for ids and times, `files` and
`databases` for what lies on disk), and `importing` sends them, each message once.
"""
