"""The command line as a user has it: real processes, a real provider."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from offbook.client.blocking import Client
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.ports import free_port
from tests.processes import OFFBOOK, Offbook, run_offbook

NOBODY = 65_534
BETWEEN_SECONDS = 0.005
"""Of who writes while something else goes on: often enough, and the machine has other things to do, too."""


@pytest.fixture(scope="module")
def provider() -> Iterator[Daemon]:
    with running(WITHOUT_MODEL | {"OFFBOOK_PORT": "0"}) as daemon:
        yield daemon


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path: that of a Unix socket may have 107 bytes only."""
    made = Path(tempfile.mkdtemp(prefix="ob"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def environ(home: Path, **variables: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
    return {**inherited, "OFFBOOK_HOME": str(home), "OFFBOOK_PORT": "0", **variables}


def offbook(home: Path, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return run_offbook(*arguments, env=environ(home, **variables), stdin=stdin, text=True)


def output_of(home: Path, *arguments: str, stdin: str = "") -> str:
    """What it prints when it succeeds."""
    done = offbook(home, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a provider and waits until it answers; whatever is left of it when the test ends is ended."""
    started: list[subprocess.Popen[str]] = []

    def start(home: Path, *arguments: str, is_installed: bool = False) -> subprocess.Popen[str]:
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        command = [OFFBOOK, "serve", *arguments]
        process = (
            subprocess.Popen(command, env=environ(home), **options)
            if is_installed
            else Offbook("serve", *arguments, env=environ(home), **options)
        )
        started.append(process)
        deadline = time.monotonic() + 90
        while (ping := offbook(home, "ping")).returncode != 0:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline, ping.stderr
            time.sleep(0.05)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def stop(process: subprocess.Popen[str], name: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(name)
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


# ── using it ──


def test_a_provider_answers_ping(provider: Daemon) -> None:
    assert "answers at unix://" in output_of(provider.home, "ping")
    assert json.loads(output_of(provider.home, "ping", "--json"))["ok"] is True


def test_what_is_recorded_is_in_the_log_and_in_the_context(provider: Daemon) -> None:
    home = provider.home
    assert output_of(home, "record", "cats", "My cat is called Ada.") == "cats: 1 message stored (#1)\n"
    assert "(#2)" in output_of(home, "record", "cats", "--role", "assistant", stdin="What a\nlovely name.\n")
    assert "(#3)" in output_of(
        home, "record", "cats", "-", "--name", "bob", "--ts", "2026-01-31T12:00:00Z", stdin="She is three years old"
    )
    log = output_of(home, "log", "cats")
    assert "user       My cat is called Ada." in log
    assert "assistant  What a\n" + " " * 28 + "lovely name.\n" in log
    assert "user bob   She is three years old" in log
    context = offbook(home, "context", "cats", "--max-chars", "500")
    assert "My cat is called Ada." in context.stdout
    assert "messages 1 to 3 of cats for agent main" in context.stderr
    assert json.loads(output_of(home, "context", "cats", "--json"))["covers"] == {"firstSeq": 1, "lastSeq": 3}


def test_an_id_is_stored_once_and_a_conflict_is_told(provider: Daemon) -> None:
    assert "1 message stored" in output_of(provider.home, "record", "once", "--id", "m1", "first words")
    assert "0 messages stored, 1 already there (#1)" in output_of(
        provider.home, "record", "once", "--id", "m1", "first words"
    )
    other = offbook(provider.home, "record", "once", "--id", "m1", "other words")
    assert other.returncode == 0
    assert "the stored one stays" in other.stderr


def test_a_file_of_messages_is_stored_and_can_be_repeated(provider: Daemon, folder: Path) -> None:
    lines = [json.dumps({"role": "user", "content": f"message {n}", "id": f"m{n}"}) for n in range(1_200)]
    (folder / "messages.jsonl").write_text("\n".join(lines) + "\n")
    receipt = json.loads(
        output_of(provider.home, "record", "bulk", "--jsonl", str(folder / "messages.jsonl"), "--json")
    )
    assert receipt == {"accepted": 1_200, "duplicates": 0, "firstSeq": 1, "lastSeq": 1_200}
    again = output_of(provider.home, "record", "bulk", "--jsonl", "-", stdin="\n".join(lines))
    assert again == "bulk: 0 messages stored, 1,200 already there (#1 to #1200)\n"
    found = output_of(provider.home, "log", "bulk", "--after", "0", "--json").splitlines()
    assert [json.loads(line)["message"]["content"] for line in found] == [f"message {n}" for n in range(1_200)]


def test_a_bad_line_is_named_with_what_is_stored(provider: Daemon) -> None:
    good = json.dumps({"role": "user", "content": "good"})
    done = offbook(provider.home, "record", "mixed", "--jsonl", "-", stdin=f"{good}\n{good}\nbad\n{good}\n")
    assert done.returncode == 1
    assert "line 3 is no message" in done.stderr
    assert "The 2 messages before are stored" in done.stderr


def test_the_log_shows_as_many_as_were_asked_for(provider: Daemon) -> None:
    messages = "\n".join(json.dumps({"role": "user", "content": f"number {n}"}) for n in range(1, 31))
    output_of(provider.home, "record", "many", "--jsonl", "-", stdin=messages)

    def shown(*arguments: str) -> list[int]:
        lines = output_of(provider.home, "log", "many", "--json", *arguments).splitlines()
        return [json.loads(line)["seq"] for line in lines]

    assert shown() == list(range(11, 31))
    assert shown("-n", "3") == [28, 29, 30]
    assert shown("-n", "0") == []
    assert shown("--after", "25") == [26, 27, 28, 29, 30]
    assert shown("--after", "25", "-n", "2") == [26, 27]
    assert offbook(provider.home, "log", "unheard-of").stderr == "nothing to show\n"


def test_following_shows_what_comes_and_ends_well(provider: Daemon) -> None:
    output_of(provider.home, "record", "live", "before")
    process = Offbook("log", "live", "-f", env=environ(provider.home), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "──" in process.stdout.readline()
    assert process.stdout.readline().endswith("before\n")
    output_of(provider.home, "record", "live", "after")
    assert process.stdout.readline().endswith("after\n")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_status_tells_counts_sessions_and_what_is_missing(provider: Daemon) -> None:
    home = provider.home
    output_of(home, "record", "notes", "hello there, researcher", "--agent", "researcher")
    output_of(home, "end", "notes", "--agent", "researcher", "--reason", "reset")
    output = output_of(home, "status", "researcher")
    assert "Agent researcher" in output
    assert "ended (reset)" in output
    assert "Other agents: main" in output
    capture = "client=plugin; first=5; last=5; sent=5"
    for header in (capture, capture.replace("5", "9")):
        body = {"sessionId": "notes", "agentId": "researcher", "message": {"role": "user", "content": header}}
        reply = provider.send("POST", "/v1/onMessage", body, {"Offbook-Capture": header}, over_socket=True)
        assert reply.status == 200
    done = offbook(home, "status", "researcher")
    assert "plugin" in done.stdout
    assert "never arrived" in done.stderr
    assert json.loads(output_of(home, "status", "researcher", "--json"))["capture"]["missing"] > 0


def test_reading_does_not_change_what_is_counted(provider: Daemon) -> None:
    output_of(provider.home, "record", "counted", "exactly so many characters", "--agent", "counted")
    before = json.loads(output_of(provider.home, "status", "counted", "--json"))["counts"]
    output_of(provider.home, "context", "counted", "--agent", "counted")
    output_of(provider.home, "log", "counted", "--agent", "counted")
    after = json.loads(output_of(provider.home, "status", "counted", "--json"))["counts"]
    assert before["chars"] == len("exactly so many characters")
    assert {**after, "auditEvents": 0} == {**before, "auditEvents": 0}


def test_sessions_are_listed(provider: Daemon) -> None:
    output_of(provider.home, "record", "listed", "hello there, you")
    assert "listed" in output_of(provider.home, "log")
    assert "listed" in {each["sessionId"] for each in json.loads(output_of(provider.home, "log", "--json"))}
    assert "has no sessions yet" in output_of(provider.home, "log", "--agent", "new-here")


def test_an_agent_comes_from_the_environment(provider: Daemon) -> None:
    done = offbook(provider.home, "record", "from", "the environment", OFFBOOK_AGENT="environed")
    assert done.returncode == 0
    assert "environed" in json.loads(output_of(provider.home, "status", "--json"))["agents"]


def test_audit_lists_and_verifies_beside_the_provider(provider: Daemon) -> None:
    home = provider.home
    output_of(home, "record", "audited", "hello there, auditor")
    listed = json.loads(output_of(home, "audit", "--session", "audited", "--json"))
    assert [event["verb"] for event in listed["events"]] == ["onMessage", "audit"]
    assert "onMessage" in output_of(home, "audit", "-n", "50")
    assert json.loads(output_of(home, "audit", "--since", "2999-01-01", "--json"))["events"] == []
    proof = output_of(home, "audit", "--verify", "--head", listed["head"]["hash"])
    assert "everything is as it was written" in proof


def test_verifying_while_messages_arrive_raises_no_false_alarm(provider: Daemon) -> None:
    is_over = threading.Event()

    def keep_writing() -> None:
        with Client(provider.socket_endpoint, home=provider.home) as client:
            while not is_over.wait(BETWEEN_SECONDS):
                client.on_message("busy", ("user", "and another one"))

    writing = threading.Thread(target=keep_writing)
    writing.start()
    try:
        for _ in range(3):
            output_of(provider.home, "audit", "--verify")
    finally:
        is_over.set()
        writing.join()


def test_the_doctor_is_content(provider: Daemon) -> None:
    output_of(provider.home, "record", "health", "hello there, doctor")
    done = offbook(provider.home, "doctor")
    assert done.returncode == 0, done.stdout
    assert "0 failures" in done.stdout


def test_a_token_opens_its_agent_and_no_other(provider: Daemon) -> None:
    secret = output_of(provider.home, "token", "create", "laptop", "--agents", "researcher").strip()
    url = f"unix://{provider.socket}"
    assert offbook(provider.home, "status", "researcher", "--url", url, OFFBOOK_TOKEN=secret).returncode == 0
    refused = offbook(provider.home, "status", "main", "--url", url, OFFBOOK_TOKEN=secret)
    assert refused.returncode == 1
    assert "not for the agent 'main'" in refused.stderr
    output_of(provider.home, "token", "revoke", "laptop")
    late = offbook(provider.home, "status", "researcher", "--json", OFFBOOK_TOKEN=secret)
    assert late.returncode == 1
    assert json.loads(late.stdout)["status"] == 401


def test_refusals_of_the_provider_are_one_line(provider: Daemon) -> None:
    done = offbook(provider.home, "record", "s" * 600, "hello")
    assert done.returncode == 1
    assert done.stderr.startswith("offbook: ")
    assert "512" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_left_in_an_outbox_is_delivered(provider: Daemon, folder: Path) -> None:
    with Client(f"unix://{folder}/nobody.sock", home=provider.home, client="left") as client:
        client.record("outboxed", ("user", "said while nobody listened"))
        client.close(0.1)
    warned = json.loads(offbook(provider.home, "doctor", "--quick", "--json").stdout)["findings"]
    assert [finding["mend"] for finding in warned if finding["check"] == "outboxes"] == [
        f"offbook --home {provider.home} flush"
    ]
    # It was meant for somebody else: neither command takes it for its own.
    forgot = json.loads(output_of(provider.home, "forget", "--matching", "zanzibar", "--yes", "--json"))
    assert forgot["undelivered"] == {"delivered": 0, "waiting": 1}
    report = json.loads(output_of(provider.home, "flush", "--rejected", "--json"))
    assert (report["delivered"], report["waiting"]) == (0, 0)
    assert [(each["endpoint"], each["waiting"]) for each in report["elsewhere"]] == [
        (f"unix://{folder}/nobody.sock", 1)
    ]
    assert "1 message meant for unix://" in output_of(provider.home, "flush")
    report = json.loads(output_of(provider.home, "flush", "--rejected", "--everything", "--json"))
    assert (report["delivered"], report["waiting"], report["elsewhere"]) == (1, 0, [])
    assert "nothing waits" in output_of(provider.home, "flush")
    assert "said while nobody listened" in output_of(provider.home, "log", "outboxed")


# ── recall ──


def test_what_was_said_in_one_session_is_recalled_in_another(provider: Daemon) -> None:
    home = provider.home
    output_of(home, "record", "monday", "The orders are stored in PostgreSQL.", "--agent", "recalling")
    corrected = "The orders are stored in SQLite now, no longer in PostgreSQL."
    output_of(home, "record", "tuesday", corrected, "--agent", "recalling")
    asked = ["recall", "--agent", "recalling", "where", "are", "the", "orders", "stored?"]

    def is_corrected() -> bool:
        found = json.loads(output_of(home, *asked, "--include-superseded", "--json"))["entries"]
        return any(entry.get("supersededBy") for entry in found)

    deadline = time.monotonic() + 120
    while not is_corrected() and time.monotonic() < deadline:
        time.sleep(0.1)
    output = output_of(home, *asked, "--explain")
    assert "session tuesday" in output
    assert "\n  replaces: The orders are stored in PostgreSQL. (" in output
    assert "\n  found by text (" in output
    assert "holds now" in output.partition("left out")[2]
    both = json.loads(output_of(home, *asked, "--include-superseded", "--json"))["entries"]
    assert {entry["sessionId"] for entry in both} == {"monday", "tuesday"}
    ids = {entry["sessionId"]: entry["id"] for entry in both}
    assert [entry["supersededBy"] for entry in both if entry["sessionId"] == "monday"] == [ids["tuesday"]]
    nothing = offbook(home, *asked, "--at", "2020-01-01")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "nothing found" in nothing.stderr


def test_what_is_pinned_is_hot_until_it_is_not(provider: Daemon) -> None:
    home = provider.home
    output_of(home, "record", "pins", "The door code is on the fridge.", "--agent", "pinning")
    found = json.loads(output_of(home, "recall", "door code", "--agent", "pinning", "--json"))["entries"][0]
    assert output_of(home, "pin", found["id"], "--agent", "pinning") == f"1 entry pinned: {found['id']}\n"
    assert "· pinned ·" in output_of(home, "recall", "door code", "--agent", "pinning")
    assert "pinned        1\n" in output_of(home, "status", "pinning")
    assert found["id"] in output_of(home, "unpin", "--keyword", "fridge", "--agent", "pinning")
    assert "nothing changed" in output_of(home, "unpin", found["id"], "--agent", "pinning")
    refused = offbook(home, "pin", "nonsense", "--agent", "pinning")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_agents_search_each_other_where_both_agree(provider: Daemon) -> None:
    home = provider.home
    output_of(home, "record", "trip", "The ferry to Naxos leaves at nine.", "--agent", "traveller")
    output_of(home, "record", "desk", "The budget is due on Friday.", "--agent", "clerk")
    asked = ["recall", "when does the ferry leave", "--scope", "all", "--agent", "clerk"]
    closed = offbook(home, *asked)
    assert "ferry" not in closed.stdout
    assert "offbook cross on" in closed.stderr
    output_of(home, "cross", "on", "--agent", "clerk")
    assert "clerk" in output_of(home, "cross", "on", "--agent", "traveller")
    assert "session trip of agent traveller" in output_of(home, *asked)
    output_of(home, "cross", "off", "--agent", "traveller")
    assert "ferry" not in offbook(home, *asked).stdout


def test_the_index_is_made_anew_and_finds_the_same() -> None:
    with running({"OFFBOOK_PORT": "0"}) as with_model:
        check_index(with_model.home)


def check_index(home: Path) -> None:
    lines = [json.dumps({"role": "user", "content": f"Shelf {n} holds jar number {n}."}) for n in range(40)]
    output_of(home, "record", "jars", "--jsonl", "-", "--agent", "indexed", stdin="\n".join(lines))
    for option in ([], ["--embeddings"]):
        output = output_of(home, "reindex", "--agent", "indexed", *option)
        assert output == "agent indexed: 40 messages can be found by text, 40 of them by meaning too\n"
    found = json.loads(output_of(home, "recall", "jar number 17", "--agent", "indexed", "--json"))["entries"]
    assert "Shelf 17 holds jar number 17." in [entry["text"] for entry in found]
    told_of = output_of(home, "status", "indexed")
    assert "by text       40 of 40\n" in told_of
    assert "100 %  (40)\n" in told_of


# ── without a provider ──


def test_commands_that_ask_fail_alike_where_nobody_answers(folder: Path) -> None:
    home = folder / "none"
    asking = [["ping"], ["status"], ["record", "s", "t"], ["log"], ["log", "s", "-f"], ["context", "s"], ["end", "s"]]
    asking += [["recall", "cat"], ["pin", "m1"], ["unpin", "m1"], ["cross"], ["reindex"]]
    asking += [["inspect"], ["expand", "L1-0001"], ["compress"], ["replay", "s", "--at", "2026-01-31"]]
    asking += [["swap", "s", "--used-tokens", "1", "--context-window", "1"]]
    for arguments in [*asking, ["audit"], ["flush"]]:
        done = offbook(home, *arguments)
        assert (done.returncode, done.stdout) == (3, ""), arguments
        assert "start it with `offbook serve`" in done.stderr
    assert not home.exists()


# ── serving ──


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_provider_ends_well_and_takes_its_socket_along(name: signal.Signals, folder: Path, start: Start) -> None:
    process = start(folder / "h", is_installed=True)
    exit_code, output, errors = stop(process, name)
    assert exit_code == 0
    assert "is ready." in output
    assert str(folder / "h" / "offbook.sock") in output
    assert not (folder / "h" / "offbook.sock").exists()
    assert all(json.loads(line)["action"] for line in errors.splitlines())


def test_a_second_provider_is_refused(provider: Daemon) -> None:
    done = offbook(provider.home, "serve")
    assert done.returncode == 1
    assert f"another Offbook (process {provider.process.pid})" in done.stderr
    assert "Traceback" not in done.stderr
    assert offbook(provider.home, "ping").returncode == 0


def test_a_stale_socket_is_replaced(folder: Path, start: Start) -> None:
    process = start(folder / "h")
    process.kill()
    process.communicate()
    assert (folder / "h" / "offbook.sock").exists()
    stale = offbook(folder / "h", "doctor", "--quick")
    assert "stale" in stale.stdout
    process = start(folder / "h")
    assert stop(process)[0] == 0


def test_what_was_acknowledged_outlives_a_kill(folder: Path, start: Start) -> None:
    process = start(folder / "h")
    output_of(folder / "h", "record", "chat", "said before the end")
    process.kill()
    process.communicate()
    output_of(folder / "h", "audit", "--verify")
    process = start(folder / "h")
    assert "said before the end" in output_of(folder / "h", "log", "chat")
    stop(process)


def test_a_port_in_use_is_told(folder: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = offbook(folder / "h", "serve", "--port", port, "--log-format", "json")
    assert done.returncode == 1
    assert f"port {port} is in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_newer_store_is_refused_and_left_alone(folder: Path, start: Start) -> None:
    process = start(folder / "h")
    stop(process)
    database = folder / "h" / "offbook.db"
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = database.read_bytes()
    for arguments in (["serve"], ["audit", "--verify"], ["backup", str(folder)]):
        done = offbook(folder / "h", *arguments)
        assert done.returncode == 1
        assert "upgrade Offbook" in done.stderr
        assert "Traceback" not in done.stderr
    assert database.read_bytes() == before


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_that_cannot_be_written_is_told(is_there: bool, folder: Path) -> None:
    home = folder / "h"
    if is_there:
        home.mkdir(mode=0o555)
    folder.chmod(0o555)
    # Root may write anywhere, and another user may not reach this interpreter: load first, then step down.
    step_down = f"os.setgid({NOBODY}); os.setuid({NOBODY})" if os.getuid() == 0 else ""
    program = (
        "import os, offbook.cli, offbook.cli.provider, offbook.api.daemon, offbook.model.logs, offbook.model.tls, uvloop\n"
        f"{step_down}\n"
        "offbook.cli.root(['serve'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ(home), capture_output=True, text=True, timeout=60, check=False
    )
    folder.chmod(0o755)
    assert done.returncode == 1
    assert done.stderr.startswith(f"offbook: the data folder {home} cannot be made or written")
    assert "set OFFBOOK_HOME" in done.stderr
    assert "Traceback" not in done.stderr


def test_tls_is_served_with_the_certificate_made_here(folder: Path, start: Start) -> None:
    output_of(folder / "h", "tls-cert", "--out", str(folder))
    port = free_port()
    pair = ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]
    process = start(folder / "h", "--host", "0.0.0.0", "--port", str(port), *pair)
    url = f"https://localhost:{port}"
    trusting = offbook(folder / "h", "ping", "--url", url, SSL_CERT_FILE=str(folder / "cert.pem"))
    assert (trusting.returncode, url in trusting.stdout) == (0, True), trusting.stderr
    assert offbook(folder / "h", "ping", "--url", url).returncode == 3
    exit_code, output, _ = stop(process)
    assert (exit_code, f"https://0.0.0.0:{port}" in output) == (0, True)


# ── backups ──


def test_a_backup_taken_while_messages_arrive_is_restored_elsewhere(
    provider: Daemon, folder: Path, start: Start
) -> None:
    home, new = provider.home, folder / "new"
    output_of(home, "record", "kept", "--jsonl", "-", stdin=json.dumps({"role": "user", "content": "large " * 30_000}))
    is_over = threading.Event()

    def keep_writing() -> None:
        with Client(provider.socket_endpoint, home=home) as client:
            while not is_over.wait(BETWEEN_SECONDS):
                client.on_message("arriving", ("user", "one more, while it is backed up"))

    writing = threading.Thread(target=keep_writing)
    writing.start()
    try:
        made = json.loads(output_of(home, "backup", str(folder), "--json"))
    finally:
        is_over.set()
        writing.join()
    running_still = offbook(home, "restore", made["file"], "--force")
    assert running_still.returncode == 1
    assert "stop it" in running_still.stderr
    assert "everything is as it was written" in output_of(new, "restore", made["file"])

    process = start(new)
    try:
        assert output_of(new, "log", "kept", "--after", "0", "--json") == output_of(
            home, "log", "kept", "--after", "0", "--json"
        )
        there = output_of(new, "log", "arriving", "--after", "0", "--json").splitlines()
        here = output_of(home, "log", "arriving", "--after", "0", "--json").splitlines()
        assert there == here[: len(there)]
        assert offbook(new, "doctor").returncode == 0
    finally:
        stop(process)
    assert offbook(new, "restore", made["file"]).returncode == 1
    assert "what was there before" in output_of(new, "restore", made["file"], "--force")


def test_a_backup_that_is_told_to_end_leaves_nothing_behind(folder: Path, start: Start) -> None:
    home, place = folder / "h", folder / "place"
    place.mkdir()
    process = start(home)
    pictures = [{"type": "image", "mediaType": "image/png", "data": os.urandom(1_000_000).hex()} for _ in range(30)]
    lines = [json.dumps({"role": "user", "content": [picture]}) for picture in pictures]
    output_of(home, "record", "large", "--jsonl", "-", stdin="\n".join(lines))
    stop(process)
    backup = Offbook("backup", str(place), env=environ(home), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(place.glob(".offbook-backup-*/*.tar.gz")) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert stop(backup)[0] == 143
    assert list(place.iterdir()) == []


def test_an_altered_backup_is_refused(provider: Daemon, folder: Path) -> None:
    output_of(provider.home, "record", "kept", "something to keep")
    made = Path(output_of(provider.home, "backup", str(folder)).splitlines()[0])
    content = bytearray(made.read_bytes())
    content[len(content) // 2] ^= 0xFF
    made.write_bytes(content)
    done = offbook(folder / "new", "restore", str(made))
    assert done.returncode == 1
    assert "take another backup" in done.stderr
    assert not (folder / "new").exists()
