"""That a session ended is heard of, whenever a provider is there to hear it, and behind its messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from offbook.client.blocking import Client
from offbook.client.endpoint import Endpoint
from offbook.client.outbox import Outbox
from offbook.contrib.coding.capture import Document
from offbook.contrib.coding.hooks import Ends, answer, deliver, hosts_with_ends
from offbook.model.errors import ProviderRefused, ProviderUnavailable


def refusal(status: int) -> ProviderRefused:
    return ProviderRefused({"status": status, "detail": "no", "type": "x", "retryable": False})


class Told:
    """A client of a provider that may be away or refuse."""

    def __init__(self, agent_id: str | None = None, endpoint: str = "http://127.0.0.1:1") -> None:
        self.agent_id = agent_id
        self.endpoint = Endpoint.parse(endpoint)
        self.trouble: Callable[[dict[str, Any]], Exception | None] = lambda body: None
        self.heard: list[dict[str, Any]] = []
        self.is_settled = True

    def settle(self, timeout_seconds: float) -> bool:
        return self.is_settled

    def call(self, verb: str, body: dict[str, Any]) -> None:
        if verb != "hooks/session-end":
            raise ProviderUnavailable("nobody answers")
        if (error := self.trouble(body)) is not None:
            raise error
        self.heard.append(body)

    def prepare_turn(self, *_: object, **__: object) -> None:
        raise ProviderUnavailable("nobody answers")

    session_start = prepare_turn

    @property
    def as_client(self) -> Client:
        return cast(Client, self)


def hook(client: Told, home: Path, event: str, session: str = "s", **fields: Any) -> None:
    document = Document(event=event, session_id=session, **fields)
    with suppress(ProviderUnavailable):
        answer("claude-code", document, client.as_client, home, {}, deadline_ms=1_000)
    deliver("claude-code", client.as_client, home, seconds=5.0)


def test_an_end_is_told_at_once_where_somebody_listens(tmp_path: Path) -> None:
    client = Told("coder")
    hook(client, tmp_path, "SessionEnd", reason="logout")
    assert client.heard == [{"sessionId": "claude-code:s", "agentId": "coder", "reason": "logout"}]
    assert hosts_with_ends(tmp_path) == []


@pytest.mark.parametrize("is_settled", [True, False], ids=["away", "slow"])
def test_an_end_that_nobody_heard_is_told_by_the_next_hook_of_any_session(tmp_path: Path, is_settled: bool) -> None:
    away = Told()
    away.is_settled = is_settled
    away.trouble = lambda body: ProviderUnavailable("nobody answers")
    hook(away, tmp_path, "SessionEnd")
    assert hosts_with_ends(tmp_path) == ["claude-code"]
    back = Told("another")
    hook(back, tmp_path, "Stop", "later")
    # For whom it was meant, and not for the agent of the hook that tells it.
    assert back.heard == [{"sessionId": "claude-code:s"}]
    hook(back, tmp_path, "Stop", "later")
    assert len(back.heard) == 1


def test_an_end_comes_behind_the_messages_it_is_the_end_of(tmp_path: Path) -> None:
    client = Told()
    outbox = Outbox(tmp_path / "outbox" / "claude-code~2", max_bytes=1_000_000, endpoint=str(client.endpoint))
    outbox.append(b'{"sessionId":"claude-code:s","message":{"role":"user","content":"x"}}', "main")
    outbox.close()
    hook(client, tmp_path, "SessionEnd")
    assert client.heard == []
    outbox = Outbox(tmp_path / "outbox" / "claude-code~2", max_bytes=1_000_000)
    [queued] = outbox.peek(10, 1_000)
    outbox.advance(queued.ordinal)
    outbox.close()
    hook(client, tmp_path, "Stop")
    assert [body["sessionId"] for body in client.heard] == ["claude-code:s"]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_session_that_goes_on_has_not_ended(tmp_path: Path, event: str) -> None:
    client = Told()
    client.is_settled = False
    hook(client, tmp_path, "SessionEnd")
    hook(client, tmp_path, "SessionEnd", "other")
    client.is_settled = True
    hook(client, tmp_path, event, prompt="and now?")
    assert [body["sessionId"] for body in client.heard] == ["claude-code:other"]


def test_an_end_is_kept_where_its_transcript_is_read_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        raise OSError("read by another")

    monkeypatch.setattr("offbook.contrib.coding.hooks.capture", busy)
    client = Told()
    with pytest.raises(OSError, match="read by another"):
        hook(client, tmp_path, "SessionEnd")
    deliver("claude-code", client.as_client, tmp_path, seconds=5.0)
    assert len(client.heard) == 1


def test_what_one_may_not_tell_keeps_nobody_from_telling_the_rest(tmp_path: Path) -> None:
    ends, client = Ends(tmp_path, "codex"), Told()
    for name in ("mine", "theirs", "never"):
        ends.keep(client.as_client, name, None)
    refused = {"theirs": 403, "never": 400}
    client.trouble = lambda body: refusal(refused[body["sessionId"]]) if body["sessionId"] in refused else None
    assert ends.tell(client.as_client, seconds=5.0) == 1
    client.trouble = lambda body: None
    assert ends.tell(client.as_client, seconds=5.0) == 1  # 400 is for ever
    assert [body["sessionId"] for body in client.heard] == ["mine", "theirs"]


def test_what_is_meant_for_another_provider_waits_for_it_or_for_flush(tmp_path: Path) -> None:
    ends, client = Ends(tmp_path, "codex"), Told()
    ends.keep(Told(endpoint="https://memory.example").as_client, "s", None)
    assert ends.tell(client.as_client, seconds=5.0, endpoint=client.endpoint) == 0
    assert ends.tell(client.as_client, seconds=5.0) == 1


def test_a_provider_is_the_same_under_another_of_its_names(tmp_path: Path) -> None:
    ends, client = Ends(tmp_path, "codex"), Told()
    name = f"unix://{tmp_path}/offbook.sock"
    ends.keep(Told(endpoint=name).as_client, "s", None)
    assert ends.tell(client.as_client, seconds=5.0, endpoint=client.endpoint) == 0
    assert ends.tell(client.as_client, seconds=5.0, endpoint=client.endpoint, own={name}) == 1


@pytest.mark.parametrize("content", [b"", b"\xff", b"{", b"[]", b'{"endpoint":1,"body":{}}'])
def test_a_broken_file_is_in_nobodys_way(tmp_path: Path, content: bytes) -> None:
    ends, client = Ends(tmp_path, "codex"), Told()
    ends.keep(client.as_client, "s\0数据🐈" + "x" * 1_000_000, "r")
    (tmp_path / "hooks" / "codex" / "0.end").write_bytes(content)
    assert ends.tell(client.as_client, seconds=5.0) == 1
