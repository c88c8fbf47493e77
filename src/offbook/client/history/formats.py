"""The table of formats that `offbook import NAME PATH` reads. A reader is loaded when its format is used.

A reader is a function `conversations(path, report, owner)`: it finds the conversations under a path, leaves their
messages to be read when they are told, and tells the report what it leaves out and what it could not read. It opens
nothing that it does not close: `Conversation.messages` opens anew.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

if TYPE_CHECKING:
    from pathlib import Path

    from offbook.client.history.conversations import Conversation, ImportReport

Owner = Callable[[str], str]
"""From a session key to the agent whose session it is: the one that was named, else the one that an OpenClaw key
(`agent:<agentId>:…`) names, else the default agent."""


class Reader(Protocol):
    def __call__(self, path: Path, report: ImportReport, owner: Owner) -> list[Conversation]: ...


class Format(NamedTuple):
    """`line` is what `--help` lists; `examples` are what follows `offbook import NAME`; `note` says what is taken and
    what is not, in lines of at most 80 characters."""

    line: str
    reader: str
    """`module:function`."""
    examples: tuple[str, ...]
    note: str
    give: str
    """What to give instead of a path that holds nothing of this format, and where it usually lies."""

    def load(self) -> Reader:
        module, _, function = self.reader.partition(":")
        return cast(Reader, getattr(import_module(module), function))


FORMATS: dict[str, Format] = {
    "lcm": Format(
        "Store the messages of a lossless-claw database (lcm.db).",
        "offbook.contrib.importers.lcm:conversations",
        ("~/.openclaw/lcm.db --dry-run", "~/.openclaw/lcm.db", "backup/lcm.db --agent main --json"),
        "Every message with its parts, under the session key it has in OpenClaw. Its\n"
        "summaries are left out: Offbook makes its own from the messages. The host may be\n"
        "running. Import OpenClaw's own transcripts first where they are still there.",
        "give lossless-claw's lcm.db; it lies in OpenClaw's folder, such as ~/.openclaw/lcm.db",
    ),
    "mem0": Format(
        "Store the memories of a mem0 export (JSON).",
        "offbook.contrib.importers.mem0:conversations",
        ("memories.json --dry-run", "memories.json", "memories.json --agent helper --json"),
        "A list of memories, or an object that holds one as `results` or `memories`. Each\n"
        "becomes a note of its own time, not something that somebody said.",
        'give the JSON that `get_all` answers: a list of memories, or {"results": [...]}',
    ),
    "chatgpt": Format(
        "Store the conversations of a ChatGPT data export.",
        "offbook.contrib.importers.chatgpt:conversations",
        ("chatgpt-export.zip --dry-run", "chatgpt-export.zip", "unpacked-export --agent main", "conversations.json"),
        "The zip as it came, the folder it unpacks to, or conversations.json itself. Of an\n"
        "edited conversation the branch that is shown is taken; images are left out.",
        "give the zip of ChatGPT's export as it came, the folder it unpacks to, or its conversations.json",
    ),
    "claude": Format(
        "Store the conversations of a Claude data export.",
        "offbook.contrib.importers.claude_export:conversations",
        ("claude-export.zip --dry-run", "claude-export.zip", "unpacked-export --agent main", "conversations.json"),
        "The zip as it came, the folder it unpacks to, or conversations.json itself, with\n"
        "the text of attachments. Projects and users.json are left out.",
        "give the zip of Claude's export as it came, the folder it unpacks to, or its conversations.json",
    ),
    "claude-code": Format(
        "Store the sessions of Claude Code (JSONL).",
        "offbook.contrib.importers.claude_code:conversations",
        ("~/.claude/projects --dry-run", "~/.claude/projects", "~/.claude/projects/my-project --agent coder"),
        "A folder gives every session under it, a file one. What the program told itself\n"
        "(summaries, meta messages, side chains) is left out and counted.",
        "give a .jsonl file of Claude Code, or a folder of them such as ~/.claude/projects",
    ),
    "codex": Format(
        "Store the sessions of Codex (rollout JSONL).",
        "offbook.contrib.importers.codex:conversations",
        ("~/.codex/sessions --dry-run", "~/.codex/sessions", "~/.codex/sessions/2026/09 --agent coder"),
        "A folder gives every session under it, a file one. What the program told itself\n"
        "(instructions, context, events, sub-agents) is left out and counted.",
        "give a rollout-….jsonl of Codex, or a folder of them such as ~/.codex/sessions",
    ),
    "markdown": Format(
        "Store the notes of Markdown files (MEMORY.md, CLAUDE.md, memory/*.md).",
        "offbook.contrib.importers.markdown:conversations",
        ("MEMORY.md --dry-run", "MEMORY.md", "memory --agent main", "notes --json"),
        "Each paragraph and each list item becomes a note, with the headings above it. Run\n"
        "it again after an edit: only what is new is added. A file named by a day\n"
        "(2026-05-10.md) dates its notes.",
        "give a .md file with notes in it, or a folder of such files",
    ),
    "swap-jsonl": Format(
        "Store the messages of the swap-memory plugin (swap.jsonl).",
        "offbook.transfer.documents.swap_jsonl:conversations",
        ("~/.openclaw --dry-run", "~/.openclaw/agents/main/swap/swap.jsonl", "swap.jsonl --agent main --json"),
        "The file, or the folder of the host: then that of every agent. Each message under\n"
        "the id and the session it has there. Embeddings are left out and made anew.",
        "give the plugin's swap.jsonl, such as ~/.openclaw/agents/main/swap/swap.jsonl, or the host's folder",
    ),
    "summaries": Format(
        "Store the summaries of the hierarchical memory plugin (summaries/).",
        "offbook.transfer.documents.summaries_folder:conversations",
        ("summaries --dry-run", "~/.openclaw/state/agents/main/memory/summaries", "summaries --agent main --json"),
        "What they were made of is not there, so each becomes a message of the session\n"
        "`summaries:<agent>`, with its sources and times: what the agent remembers.",
        "give the plugin's folder with index.json and L1, such as ~/.openclaw/state/agents/main/memory/summaries",
    ),
    "archive": Format(
        "Store the archives of the continuity plugin (archive/2026-05-10.json).",
        "offbook.transfer.documents.archive_days:conversations",
        ("data --dry-run", "data/archive", "data/archive/2026-05-10.json --agent main --json"),
        "The folder of all days, or a file. Under the session that a message names, else\n"
        "`archive:<agent>`. What is in continuity.db as well is stored once.",
        "give the folder `archive` in the plugin's data folder, or the file of a day in it (2026-05-10.json)",
    ),
    "continuity-db": Format(
        "Store the exchanges of the continuity plugin (continuity.db).",
        "offbook.transfer.documents.continuity_db:conversations",
        ("data/continuity.db --dry-run", "data/continuity.db", "backup/continuity.db --agent main --json"),
        "Question and answer of each exchange. Import the archives first where there are\n"
        "any: they hold more. Vectors are left out and made anew. The host may run.",
        "give the plugin's continuity.db; it lies in the plugin's data folder, beside `archive`",
    ),
}
