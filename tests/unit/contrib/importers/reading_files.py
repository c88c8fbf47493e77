"""What a reader makes of a path, all of it at once."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from offbook.client.history.conversations import Damage, ImportReport
from offbook.client.history.formats import FORMATS
from offbook.ingest.scope import resolve_agent


class Read(NamedTuple):
    sessions: dict[str, list[dict[str, Any]]]
    agents: dict[str, str]
    report: ImportReport
    damages: list[Damage]

    @property
    def only(self) -> list[dict[str, Any]]:
        [messages] = self.sessions.values()
        return messages

    def left_out(self) -> dict[str, int]:
        return {each.what: each.count for each in self.report.left_out}


def read(form: str, path: Path, *, agent_id: str | None = None) -> Read:
    report = ImportReport(state=str(path), is_dry_run=False)
    found = FORMATS[form].load()(path, report, lambda key: resolve_agent(key, agent_id, "main"))
    damages: list[Damage] = []
    sessions = {each.key: [ready.wire for ready in each.messages(damages.append)] for each in found}
    assert len(sessions) == len(found)
    return Read(sessions, {each.key: each.agent_id for each in found}, report, damages)


def texts(messages: list[dict[str, Any]]) -> list[Any]:
    return [each["content"] for each in messages]


def write_json(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def write_zip(path: Path, members: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path
