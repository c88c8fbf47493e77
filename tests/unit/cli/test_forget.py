"""`offbook forget`: what it shows, when it asks, what it keeps, and what it exits with."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from offbook.cli import forget, upkeep
from offbook.cli.receipts import IN_WORDS, spread
from offbook.client import outboxes
from offbook.model.errors import Forbidden, NotFound, ProviderRefused, ProviderUnavailable, WrongShape
from offbook.model.home import Home
from offbook.model.receipt import ForgetReceipt, ForgottenSpan, Reached
from offbook.model.types import now
from tests.unit.cli.answering import Answering
from tests.unit.cli.conftest import Run

REMOTE = ["--url", "http://memory.example:8770"]
FOUND = {"where": "wiki/main/index.md", "what": "its text"}


def receipt(**fields: Any) -> dict[str, Any]:
    given = {
        "id": "forget-0123456789abcdef",
        "agentId": "main",
        "at": "2026-01-31T12:00:00Z",
        "by": "owner",
        "reason": "",
        "dryRun": False,
        "how": "matching",
        "reached": msgspec.to_builtins(Reached(messages=2, vectors=3, summaries=1)),
        "spans": [{"sessionId": "chat", "firstSeq": 4, "lastSeq": 5}],
        "probes": [],
        "outside": ["what the host keeps itself"],
        "residue": [],
        "auditSeq": 12,
        "signature": "s" * 64,
        "saidByANewerProvider": {"kept": True},
    }
    return given | fields


def nothing() -> dict[str, Any]:
    return receipt(reached=msgspec.to_builtins(Reached()), spans=[], outside=[], signature="")


@pytest.fixture(autouse=True)
def answers(provider: Answering) -> Answering:
    said = [
        {"sessionId": "chat", "seq": seq, "receivedAt": now(), "message": {"role": "user", "content": content}}
        for seq, content in ((4, "I live at 12 Harbour\nStreet \x1b[31m"), (5, "记忆 " * 200))
    ]
    provider.with_answers("forget", {"receipt": receipt(dryRun=True, signature="")}, {"receipt": receipt()})
    provider.with_answers("expand", {"spans": [], "messages": said})
    return provider


# ── before ──


def test_every_field_of_what_is_reached_has_words() -> None:
    assert IN_WORDS.keys() == {field.name for field in msgspec.structs.fields(Reached)}


def test_a_dry_run_shows_what_would_be_touched_and_touches_nothing(run: Run, answers: Answering, home: Home) -> None:
    result = run("forget", "--matching", "12 harbour street", "--dry-run")
    assert result.exit_code == 0, result.output
    assert [body["dryRun"] for body in answers.bodies("forget")] == [True]
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines() if line.strip()]
    assert ["2", "messages"] in lines
    assert ["3", "vectors of them"] in lines
    assert "lessons" not in result.stdout
    assert "I live at 12 Harbour Street" in result.stdout
    assert "\x1b[31m" not in result.stdout
    assert "…" in result.stdout
    assert "what the host keeps itself" in result.stderr
    assert not home.receipts.exists()


def test_one_of_a_kind_is_said_as_one(run: Run, answers: Answering) -> None:
    one = receipt(dryRun=True, signature="", reached={"messages": 1, "lessons": 1})
    answers.with_answers("forget", {"receipt": one})
    result = run("forget", "m100000001")
    lines = [line.split(maxsplit=1) for line in result.stdout.splitlines() if line.strip()]
    assert ["1", "message"] in lines
    assert ["1", "lesson"] in lines
    assert "--yes forgets this message without asking" in result.stderr


def test_nothing_to_forget_is_said_and_is_no_failure(run: Run, answers: Answering, home: Home) -> None:
    answers.with_answers("forget", {"receipt": nothing()})
    result = run("forget", "--session", "none", "--yes")
    assert result.exit_code == 0
    assert "nothing to forget" in result.stdout
    assert len(answers.bodies("forget")) == 1
    assert not home.receipts.exists()
    assert "nothing to forget is no failure" in run("forget", "--help").stdout


def test_what_lies_in_an_outbox_only_is_asked_for_and_forgotten(run: Run, answers: Answering) -> None:
    only = {"reached": {"outboxRecords": 2}, "spans": []}
    answers.with_answers(
        "forget", {"receipt": receipt(dryRun=True, signature="", **only)}, {"receipt": receipt(**only)}
    )
    shown = run("forget", "--matching", "harbour")
    assert "--yes forgets these 2 messages without asking" in shown.stderr
    lines = [line.split(maxsplit=1) for line in shown.stdout.splitlines() if line.strip()]
    assert ["2", "records in outboxes of this machine: refused, or delivered and still there"] in lines
    answers.with_answers(
        "forget", {"receipt": receipt(dryRun=True, signature="", **only)}, {"receipt": receipt(**only)}
    )
    done = run("forget", "--matching", "harbour", "--yes")
    assert done.exit_code == 0, done.output
    assert "forgotten: 0 messages" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_without_a_terminal_nothing_is_done_unless_yes(
    arguments: list[str], run: Run, answers: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "_can_ask", lambda: bool(arguments))
    result = run("forget", "m100000001", *arguments, input="y\n")
    assert result.exit_code == 1
    assert "--yes" in (result.stdout if arguments else result.stderr)
    assert [body["dryRun"] for body in answers.bodies("forget")] == [True]


def test_json_without_yes_is_one_problem_with_what_would_be_touched(run: Run, answers: Answering, home: Home) -> None:
    result = run("forget", "m100000001", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["type"].startswith("urn:offbook:problem:")
    assert "--yes" in document["detail"]
    assert document["receipt"] == receipt(dryRun=True, signature="")
    assert document["undelivered"] == {"delivered": 0, "waiting": 0}
    assert [body["dryRun"] for body in answers.bodies("forget")] == [True]
    dry = run("forget", "m100000001", "--json", "--dry-run")
    assert (dry.exit_code, json.loads(dry.stdout)["receipt"]["id"]) == (0, receipt()["id"])


def test_backups_that_hold_nothing_of_it_are_nothing_to_forget(run: Run, answers: Answering, home: Home) -> None:
    would = receipt(dryRun=True, signature="", spans=[], outside=[], reached={"backups": 2})
    for arguments in ([], ["--json"]):
        answers.with_answers("forget", {"receipt": would}, {"receipt": nothing()})
        result = run("forget", "--matching", "no such thing", "--yes", *arguments)
        assert result.exit_code == 0, result.output
        assert "forgotten: 0" not in result.stdout
        if arguments:
            assert json.loads(result.stdout)["savedTo"] is None
        else:
            assert "nothing to forget: no message of agent main says it, and no backup" in result.stdout
        assert len(answers.bodies("forget")) == 2 + 2 * len(arguments)
    assert not home.receipts.exists()


def test_a_mistake_is_told_once(run: Run, answers: Answering, kept: Path) -> None:
    problem = WrongShape("`matching` is shorter than 2 characters: say more of it").problem()
    answers.with_answers("forget", ProviderRefused(problem))
    answers.with_answers("forget/verify", ProviderRefused(problem))
    for arguments in (["--matching", "x"], ["--verify", str(kept), "--matching", "x"]):
        result = run("forget", *arguments)
        assert result.exit_code == 1
        assert result.stderr == "offbook: `matching` is shorter than 2 characters: say more of it\n"
        assert json.loads(run("forget", *arguments, "--json").stdout) == problem
    answers.with_answers("forget", ProviderRefused(Forbidden("this token is for others").problem()))
    assert "may not do that. this token is for others" in run("forget", "--matching", "xy").stderr


@pytest.mark.parametrize(("said", "asked"), [("n\n", 1), ("\n", 1), ("y\n", 2)])
def test_on_a_terminal_it_asks(
    said: str, asked: int, run: Run, answers: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "_can_ask", lambda: True)
    result = run("forget", "--matching", "harbour", input=said)
    assert "Forget these 2 messages for good? [y/N]" in result.stderr
    assert len(answers.bodies("forget")) == asked
    assert result.exit_code == (0 if asked == 2 else 1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["m1", "--matching", "x"],
        ["--matching", "x", "--session", "s"],
        ["--matching", b"\xff".decode("utf-8", "surrogateescape")],
        ["--verify", "no-such-file.json"],
    ],
)
def test_what_is_meant_is_said_in_one_way(arguments: list[str], run: Run, answers: Answering) -> None:
    assert run("forget", *arguments).exit_code == 2
    assert answers.asked == []


def test_examples_come_from_all_over() -> None:
    def spans(*lengths: int) -> list[ForgottenSpan]:
        return [
            ForgottenSpan(session_id=f"s{number}", first_seq=1, last_seq=each) for number, each in enumerate(lengths)
        ]

    assert [number for _, number in spread(spans(1, 100, 3))] == [1, 6, 3]
    assert [number for _, number in spread(spans(2))] == [2]
    assert spread([]) == []
    many = spread(spans(*[5] * 95))
    assert [number for _, number in many] == [1] * 10
    assert [span.session_id for span, _ in many][::9] == ["s0", "s85"]


# ── what clients had not delivered ──


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Two outboxes with three messages each, of which one cannot be opened; one more is for another provider."""
    flushed: list[str] = []

    def delivered(invocation: Any) -> dict[str, Any]:
        flushed.append(str(invocation.endpoint))
        elsewhere = [{"folder": str(tmp_path / "other"), "endpoint": "http://127.0.0.1:9999", "waiting": 4}]
        return {"delivered": 3, "waiting": 0, "busy": [str(tmp_path / "busy")], "elsewhere": elsewhere}

    monkeypatch.setattr(upkeep, "deliver_waiting", delivered)
    monkeypatch.setattr(outboxes, "folders_that_wait", lambda home: [tmp_path / "busy", tmp_path / "free"])
    monkeypatch.setattr(outboxes, "waiting_in", lambda folder: 3)
    return flushed


def test_what_waits_is_delivered_first_and_what_cannot_be_is_counted(run: Run, waiting: list[str]) -> None:
    result = run("forget", "--matching", "harbour", "--yes")
    assert len(waiting) == 1
    assert "3 messages that waited in outboxes delivered first" in result.stderr
    assert "7 messages in the outboxes of this machine not delivered yet" in result.stderr
    assert "`offbook flush` delivers them, or says for whom they are" in result.stderr


@pytest.mark.parametrize("arguments", [["--dry-run"], ["--yes", *REMOTE]])
def test_a_dry_run_delivers_nothing_and_nothing_goes_to_somebody_else(
    arguments: list[str], run: Run, waiting: list[str]
) -> None:
    result = run("forget", "--matching", "harbour", *arguments)
    assert waiting == []
    assert "6 messages in the outboxes of this machine not delivered yet" in result.stderr


# ── after ──


def test_a_receipt_is_kept_as_it_came_for_its_owner_only(run: Run, answers: Answering, home: Home) -> None:
    result = run("forget", "--matching", "harbour", "--reason", "moved", "--yes")
    assert result.exit_code == 0, result.output
    (path,) = home.receipts.iterdir()
    assert path.name == "forget-0123456789abcdef.json"
    assert json.loads(path.read_bytes()) == receipt()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.receipts.stat().st_mode) & 0o077 == 0
    assert f"offbook forget --verify {path}" in result.stdout
    assert "forgotten: 2 messages of 1 session of agent main" in result.stdout
    assert "what the host keeps itself" in result.stderr
    assert answers.bodies("forget")[1] == {"matching": "harbour", "reason": "moved"}


def test_a_receipt_goes_where_it_is_told(run: Run, tmp_path: Path, home: Home) -> None:
    place = tmp_path / "my receipt.json"
    result = run("forget", "--session", "chat", "--yes", "--receipt", str(place), *REMOTE)
    assert json.loads(place.read_bytes()) == receipt()
    assert f"--verify '{place}'" in result.stdout
    assert not home.receipts.exists()
    again = run("forget", "--session", "chat", "--yes", "--receipt", str(place))
    assert again.exit_code == 2
    assert run("forget", "--session", "chat", "--yes", "--receipt", str(tmp_path / "no" / "r.json")).exit_code == 2


def test_a_receipt_of_somebody_else_is_printed(run: Run, home: Home) -> None:
    result = run("forget", "--session", "chat", "--yes", *REMOTE)
    assert json.loads(result.stdout[result.stdout.index("\n{") :]) == receipt()
    assert "--receipt FILE" in result.stdout
    assert not home.receipts.exists()


def test_a_receipt_that_cannot_be_written_is_printed(run: Run, home: Home) -> None:
    home.folder.mkdir(parents=True)
    home.receipts.write_text("in the way")
    result = run("forget", "--session", "chat", "--yes")
    assert "cannot be written" in result.stderr
    assert json.loads(result.stdout[result.stdout.index("\n{") :]) == receipt()


@pytest.mark.parametrize("name", ["../../x", "a/b", "", "x" * 300, "..", "CON .", "\x00"])
def test_no_provider_chooses_where_it_is_written(name: str, run: Run, answers: Answering, home: Home) -> None:
    answers.with_answers("forget", {"receipt": receipt(id=name)})
    assert run("forget", "--session", "chat", "--yes").exit_code == 0
    assert [path.name for path in home.receipts.iterdir()] == ["forget-12.json"]


def test_what_is_not_gone_is_told_and_exits_with_1(run: Run, answers: Answering) -> None:
    answers.with_answers("forget", {"receipt": receipt(residue=[FOUND])})
    result = run("forget", "--matching", "harbour", "--yes")
    assert result.exit_code == 1
    assert "NOT GONE: wiki/main/index.md: its text" in result.stderr


def test_json_is_the_receipt_and_where_it_is(run: Run, home: Home) -> None:
    result = run("forget", "--matching", "harbour", "--yes", "--json")
    document = json.loads(result.stdout)
    assert document["receipt"] == receipt()
    assert Path(document["savedTo"]).parent == home.receipts
    assert document["undelivered"] == {"delivered": 0, "waiting": 0}


def test_a_provider_that_goes_away_says_what_to_do(run: Run, answers: Answering) -> None:
    answers.with_answers("forget", {"receipt": receipt(dryRun=True)}, ProviderUnavailable("nobody answers"))
    result = run("forget", "--matching", "harbour", "--yes")
    assert result.exit_code == 3
    assert "offbook audit" in result.stderr


# ── long after ──


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(receipt()))
    return path


def test_a_receipt_is_verified_as_it_was_kept(run: Run, answers: Answering, kept: Path) -> None:
    answers.with_answers("forget/verify", {"isGenuine": True, "searched": {"summary_texts": 4}, "residue": []})
    result = run("forget", "--verify", str(kept), "--matching", "harbour")
    assert result.exit_code == 0, result.output
    assert answers.asked == [("forget/verify", {"receipt": receipt(), "matching": "harbour"})]
    assert "genuine" in result.stdout
    assert "searched: 4 summary texts" in result.stdout
    assert "nothing of it was found" in result.stdout


@pytest.mark.parametrize(("number", "told"), [(0, None), (1, "1 message has no"), (3, "3 messages have no")])
def test_what_was_looked_for_by_place_only_is_said(
    number: int, told: str | None, run: Run, answers: Answering, kept: Path
) -> None:
    answer = {"isGenuine": True, "searched": {}, "residue": [], "wordless": number}
    answers.with_answers("forget/verify", answer)
    result = run("forget", "--verify", str(kept))
    assert result.exit_code == 0
    assert (told or "") in result.stderr
    assert ("looked for by place" in result.stderr) == (told is not None)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"isGenuine": False, "searched": {}, "residue": []}, "not genuine"),
        ({"isGenuine": True, "searched": {"files": 3}, "residue": [FOUND]}, "NOT GONE: wiki/main/index.md"),
    ],
)
def test_what_is_not_so_exits_with_1(answer: Any, told: str, run: Run, answers: Answering, kept: Path) -> None:
    answers.with_answers("forget/verify", answer)
    result = run("forget", "--verify", str(kept))
    assert result.exit_code == 1
    assert told in result.stderr
    as_json = run("forget", "--verify", str(kept), "--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (1, answer)


def test_what_json_printed_is_a_receipt_too(run: Run, answers: Answering, kept: Path) -> None:
    kept.write_text(json.dumps({"receipt": receipt(), "savedTo": None}))
    answers.with_answers("forget/verify", {"isGenuine": True, "searched": {}, "residue": []})
    assert run("forget", "--verify", str(kept)).exit_code == 0
    assert answers.bodies("forget/verify") == [{"receipt": receipt()}]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b"{}", b'{"receipt": 7}', b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_receipt_is_told(content: bytes, run: Run, answers: Answering, kept: Path) -> None:
    kept.write_bytes(content)
    result = run("forget", "--verify", str(kept))
    assert result.exit_code == 1
    assert "is no receipt" in result.stderr
    assert answers.asked == []


@pytest.mark.parametrize("more", [["m1"], ["--session", "s"], ["--yes"], ["--dry-run"], ["--reason", "x"]])
def test_verifying_forgets_nothing(more: list[str], run: Run, answers: Answering, kept: Path) -> None:
    assert run("forget", "--verify", str(kept), *more).exit_code == 2
    assert answers.asked == []


# ── those that the provider keeps ──

LINE = {
    "id": "forget-0123456789abcdef",
    "at": "2026-01-31T12:00:00Z",
    "by": "offbook",
    "reason": "kept for 365 days",
    "how": "retention",
    "messages": 1_234,
    "residue": 0,
    "isFinished": True,
}
LISTED = {"isGenuine": True, "searched": {}, "residue": []}


def test_receipts_that_the_provider_keeps_are_listed(run: Run, answers: Answering) -> None:
    others = [LINE | {"id": "forget-b", "residue": 2}, LINE | {"id": "forget-c", "isFinished": False}]
    answers.with_answers("forget/verify", LISTED | {"receipts": [LINE, *others]})
    result = run("forget", "--receipts", "--agent", "ada")
    assert result.exit_code == 0, result.output
    assert answers.asked == [("forget/verify", {"agentId": "ada"})]
    first, second, third = [line for line in result.stdout.splitlines() if line.startswith("forget-")]
    assert first.endswith("kept for 365 days")
    assert all(word in first for word in ("forget-0123456789abcdef", "2026-01-31", "offbook", "retention", "1,234"))
    assert second.endswith("2 NOT GONE")
    assert third.endswith("not finished yet")
    assert json.loads(run("forget", "--receipts", "--json").stdout) == {"receipts": [LINE, *others]}


def test_that_nothing_was_forgotten_yet_is_said(run: Run, answers: Answering) -> None:
    answers.with_answers("forget/verify", LISTED)
    assert "nothing was forgotten yet" in run("forget", "--receipts").stdout
    assert json.loads(run("forget", "--receipts", "--json").stdout) == {"receipts": []}


def test_a_receipt_is_verified_by_its_id_and_written_to_a_file(run: Run, answers: Answering, tmp_path: Path) -> None:
    answers.with_answers("forget/verify", LISTED | {"receipt": receipt()})
    place = tmp_path / "again.json"
    named = ["--verify", "forget-0123456789abcdef", "--agent", "main"]
    result = run("forget", *named, "--receipt", str(place), "--matching", "harbour")
    assert result.exit_code == 0, result.output
    asked = {"receiptId": "forget-0123456789abcdef", "agentId": "main", "matching": "harbour"}
    assert answers.bodies("forget/verify") == [asked]
    assert json.loads(place.read_bytes()) == receipt()
    assert "nothing of it was found" in result.stdout
    assert run("forget", *named, "--receipt", str(place)).exit_code == 2  # it is there already
    assert run("forget", "--verify", str(place), "--receipt", str(tmp_path / "other.json")).exit_code == 2
    answers.with_answers("forget/verify", ProviderRefused(NotFound("agent 'main' has no receipt 'x'").problem()))
    assert run("forget", "--verify", "x").exit_code == 1


@pytest.mark.parametrize("name", ["../x", "no such file", "a/b", "x.json", "\u8bb0\u5fc6", ""])
def test_what_is_no_file_and_no_id_is_asked_of_nobody(name: str, run: Run, answers: Answering) -> None:
    assert run("forget", "--verify", name).exit_code == 2
    assert answers.asked == []


@pytest.mark.parametrize("more", [["m1"], ["--verify", "forget-1"], ["--matching", "x"], ["--yes"]])
def test_a_list_of_receipts_goes_with_nothing_else(more: list[str], run: Run, answers: Answering) -> None:
    assert run("forget", "--receipts", *more).exit_code == 2
    assert answers.asked == []


def test_the_receipt_of_the_tests_is_one_of_ours() -> None:
    document = receipt()
    del document["saidByANewerProvider"]
    assert msgspec.convert(document, ForgetReceipt).reached.messages == 2
