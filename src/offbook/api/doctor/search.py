"""What recall needs besides the record: a model, and an index. Without either the record is as sound as ever."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from offbook.api.doctor.finding import Finding
from offbook.client.endpoint import Endpoint
from offbook.client.transport import Transport, value_of
from offbook.model.errors import ProviderError
from offbook.model.home import Home
from offbook.model.settings import Settings
from offbook.models.embedder import NO_MODEL
from offbook.models.rerankers.available import reader_status
from offbook.models.status import model_status
from offbook.projections.indexes import folder_name

ANSWER_SECONDS = 5.0
LONG_BACKLOG = 1_000
"""Messages that wait for their vectors: about ten seconds of one core. More than that is worth a word."""


def check_model(home: Home, settings: Settings, environ: Mapping[str, str]) -> Finding:
    found = model_status(settings.embedding, home.models, environ=environ)
    if found.kind == "off":
        return Finding(check="model", level="ok", what="embeddings are switched off: recall goes by text")
    if found.problem is not None:
        what = f"{found.problem}; until then recall goes by text"
        return Finding(check="model", level="warn", what=what, mend=_mend(found.kind))
    what = f"{found.model} ({'its SHA-256 is right' if found.is_verified else found.where})"
    return Finding(check="model", level="ok", what=what)


def check_reader(home: Home, settings: Settings, environ: Mapping[str, str]) -> list[Finding]:
    """Nothing is said of one that nobody wants."""
    found = reader_status(settings, home.models, environ=environ)
    if found.reader is None:
        return []
    if found.problem is not None:
        what = f"{found.problem}; until then a deep recall answers in the first order"
        return [Finding(check="reader", level="warn", what=what, mend="mend the settings rerank.…")]
    return [Finding(check="reader", level="ok", what=f"{found.reader} reads again where a recall is deep")]


async def check_index(home: Home, settings: Settings, *, is_answering: bool) -> Finding:
    if not home.indexes.is_dir():
        return Finding(check="index", level="ok", what="none yet: it is made when there is something to find")
    if not os.access(home.indexes, os.R_OK | os.W_OK | os.X_OK):
        what = f"{home.indexes} cannot be read and written: nothing can be recalled"
        return Finding(check="index", level="warn", what=what, mend=f"chmod u+rwx {home.indexes}")
    agents = sum(each.is_dir() for each in home.indexes.iterdir())
    what = f"{agents:,} {'agent' if agents == 1 else 'agents'}"
    if not is_answering:
        return Finding(check="index", level="ok", what=what)
    try:
        index, backlog = await _index_status(home, settings)
    except ProviderError as error:
        mend = "see the provider's log; `offbook reindex` makes the index anew"
        return Finding(check="index", level="warn", what=f"the provider cannot tell of it: {error}", mend=mend)
    is_wanted = settings.embedding.model != NO_MODEL
    if index is not None and index.trouble is not None and is_wanted:
        what = f"the provider has no embeddings: {index.trouble}"
        kind = "local" if settings.embedding.endpoint is None else "endpoint"
        return Finding(check="index", level="warn", what=what, mend=_mend(kind))
    if backlog > LONG_BACKLOG:
        what = f"{backlog:,} messages wait to be embedded: until then recall finds them by text"
        mend = "wait: `offbook status` shows how far it is; the setting embedding.threads gives it more cores"
        return Finding(check="index", level="warn", what=what, mend=mend)
    return Finding(check="index", level="ok", what=f"{what}; waiting to be embedded: {backlog:,}")


class _Index(msgspec.Struct):
    trouble: str | None = None


class _Status(msgspec.Struct):
    index: _Index


class _Health(msgspec.Struct):
    backlog: int


async def _index_status(home: Home, settings: Settings) -> tuple[_Index | None, int]:
    """An agent exists from the first question that names it, so only one that has an index is asked about."""
    agent_id = settings.default_agent
    endpoint = Endpoint(scheme="unix", path=str(home.socket))
    async with Transport(endpoint, token=None, timeout_seconds=ANSWER_SECONDS) as transport:
        health = value_of(await transport.get("/v1/ping"), _Health)
        if not (home.indexes / folder_name(agent_id)).is_dir():
            return None, health.backlog
        body = msgspec.json.encode({"agentId": agent_id})
        return value_of(await transport.post("/v1/status", body), _Status).index, health.backlog


def _mend(kind: str) -> str:
    if kind == "endpoint":
        return "`offbook model test hello` asks the endpoint; mend embedding.endpoint, embedding.model or its key"
    return "offbook model install"
