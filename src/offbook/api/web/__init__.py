"""The page in the browser: its files, who may open it, and what it is told as it happens."""
