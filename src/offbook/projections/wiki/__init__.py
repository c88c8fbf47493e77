"""The memory as Markdown: `running` keeps the files of `logs`, `cold` and `lessons` in step with the log."""
