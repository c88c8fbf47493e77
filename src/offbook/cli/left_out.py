"""What an import or an export leaves out, as it is said: "1 relation of the graph", "2 relations of the graph"."""

from __future__ import annotations

import re

from offbook.cli.output import counted

_HEAD = re.compile(r"(?P<head>.*?)(?P<rest>(?: (?:of|on|that|with|without|between|beside)\b.*| \(.*)?)", re.DOTALL)
"""Before these words stands what is counted, after them only what it is about."""
_PLURAL = re.compile(r"(?P<stem>\w{2,}?)(?P<end>ies|(?<!s)s)\b")
_VERBS = {" that are ": " that is ", " that say ": " that says "}


def left_out(count: int, what: str) -> str:
    """`what` names several."""
    return counted(count, _one(what), what)


def _one(what: str) -> str:
    found = _HEAD.fullmatch(what)
    assert found is not None  # it matches everything
    head = _PLURAL.sub(lambda word: word["stem"] + ("y" if word["end"] == "ies" else ""), found["head"])
    rest = found["rest"]
    for many, one in _VERBS.items():
        rest = rest.replace(many, one, 1) if rest.startswith(many) else rest
    return head.replace(" and ", " or ") + rest
