"""Every verb with every kind of id of another agent, on every surface: nothing of it comes back, nothing changes."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.acceptance.daemon import Daemon, bearer, running
from tests.processes import run_offbook

from benchmarks.prove.campaign import Tried
from benchmarks.prove.foreign_ids import Foreign, fields_of, kinds_of, requests
from benchmarks.prove.planted import (
    ENVIRON,
    Fields,
    Planted,
    asked,
    bound_token,
    claim,
    offer_jobs,
    plant,
    samples,
)
from benchmarks.results import Cell
from offbook.api.mcp.tools import TOOLS
from offbook.api.verbs import VERBS

OURS, THEIRS = "bob", "alice"
DEFAULT_AGENT = "main"
MCP_HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
MCP_VERBS = {
    "memory_recall": "recall",
    "memory_record": "onMessage",
    "memory_context": "getCompressedContext",
    "memory_expand": "expand",
    "memory_pin": "pin",
    "memory_forget": "forget",
    "memory_status": "status",
}
SURFACES = ("HTTP", "socket", "MCP", "command line")


class Tally:
    """What was asked on each surface, and what was wrong with the answers."""

    def __init__(self, theirs: Planted) -> None:
        self._theirs = theirs
        self.asked: dict[str, Counter[str]] = {surface: Counter() for surface in SURFACES}
        self.kinds: defaultdict[str, set[str]] = defaultdict(set)
        self.wrong: list[str] = []
        self.shown_to_its_owner = 0
        """Answers to the owner's own requests that hold what is looked for: if none did, nothing would be proven."""

    def holds(self, answer: bytes) -> bool:
        return any(word.encode() in answer for word in self._theirs.words)

    def note(self, surface: str, verb: str, kind: str, sent: bytes, answer: bytes) -> None:
        """Whoever sends a word already has it: those that were sent do not count."""
        self.asked[surface][verb] += 1
        self.kinds[verb].add(kind)
        for word in self._theirs.words:
            if word.encode() in answer and word.encode() not in sent:
                self.wrong.append(
                    f"{surface}, {verb} with another's {kind}: {word} in {answer[:300]!r} to {sent[:300]!r}"
                )

    def fault(self, surface: str, asked: Foreign, answer: object) -> None:
        self.wrong.append(
            f"{surface}, {asked.verb} with another's {asked.kind}: {answer!r:.300} to {asked.body!r:.300}"
        )


class Isolation:
    def __init__(self, folder: Path, *, is_quick: bool) -> None:
        self._folder = folder
        self._is_quick = is_quick

    def run(self) -> Tally:
        home = self._folder / "home"
        home.mkdir(mode=0o700)
        token = bound_token(home, OURS, OURS)
        with running(ENVIRON, home=home) as daemon:
            theirs = plant(daemon, THEIRS, "zqx")
            ours = plant(daemon, OURS, "own")
            offer_jobs(daemon, theirs)
            theirs = theirs._replace(job_id=claim(daemon, theirs))
            # Under the same name as theirs: what is asked of it is answered from ours.
            said = {"role": "user", "content": "This is ours.", "id": theirs.message_id}
            asked(daemon, "onMessage", agentId=OURS, sessionId=theirs.session_id, message=said)
            before = state_of(daemon, THEIRS)
            tally = Tally(theirs)
            tally.shown_to_its_owner = sum(
                tally.holds(daemon.ask(verb, **fields).body) for verb, fields in reads(theirs)
            )
            own = {verb: _as_one_agent(fields) for verb, fields in samples(ours).items()}
            for foreign in requests(own, theirs, DEFAULT_AGENT):
                self._over_http(daemon, foreign, token, tally)
            self._elsewhere(daemon, token, tally)
            self._over_mcp(daemon, theirs, token, tally)
            self._by_command(daemon, theirs, token, tally)
            tally.wrong += changes(before, state_of(daemon, THEIRS))
        return tally

    def _over_http(self, daemon: Daemon, foreign: Foreign, token: str, tally: Tally) -> None:
        sent = msgspec.json.encode(foreign.body)
        for surface in ("HTTP", "socket"):
            reply = daemon.send("POST", f"/v1/{foreign.verb}", sent, bearer(token), over_socket=surface == "socket")
            tally.note(surface, foreign.verb, foreign.kind, sent, reply.body)
            if reply.status >= 500 or (not foreign.is_own and reply.status != 403):
                tally.fault(surface, foreign, (reply.status, reply.body))

    def _elsewhere(self, daemon: Daemon, token: str, tally: Tally) -> None:
        """What is no verb: the events of the web page, the figures."""
        watched = daemon.send("POST", "/ui/events", {"agentId": THEIRS}, bearer(token))
        tally.note("HTTP", "events of the web page", "agent", b"", watched.body)
        if watched.status != 403:
            tally.fault("HTTP", Foreign("events of the web page", "agent", {}, False), (watched.status, watched.body))
        figures = daemon.send("GET", "/metrics", headers=bearer(token))
        tally.note("HTTP", "metrics", "words", b"", figures.body)
        for scope in ("all", "agent"):
            body = {"agentId": OURS, "sessionId": "any", "query": "src module page aunt Greta", "scope": scope}
            found = daemon.send("POST", "/v1/recall", body, bearer(token))
            tally.note("HTTP", "recall", "words", b"", found.body)

    def _over_mcp(self, daemon: Daemon, theirs: Planted, token: str, tally: Tally) -> None:
        for verb, kind, method, params in mcp_requests(theirs):
            sent = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            reply = daemon.send("POST", "/mcp", sent, {**bearer(token), **MCP_HEADERS})
            tally.note("MCP", verb, kind, sent, reply.body)
            if reply.status != 200:
                tally.fault("MCP", Foreign(verb, kind, params, True), (reply.status, reply.body))

    def _by_command(self, daemon: Daemon, theirs: Planted, token: str, tally: Tally) -> None:
        elsewhere = self._folder / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OFFBOOK_")}
        environ = {
            **inherited,
            "OFFBOOK_HOME": str(elsewhere),
            "OFFBOOK_URL": str(daemon.tcp_endpoint),
            "OFFBOOK_TOKEN": token,
        }
        commands = list(command_lines(theirs))
        for verb, kind, arguments in commands[::5] if self._is_quick else commands:
            for agent in (OURS, THEIRS):
                done = run_offbook(*arguments, "--agent", agent, env=environ, cwd=str(elsewhere))
                sent = " ".join(arguments).encode()
                tally.note("command line", verb, kind, sent, done.stdout + done.stderr)
                is_wrong = b"Traceback" in done.stderr or (agent == THEIRS and done.returncode == 0)
                if is_wrong:
                    tally.fault("command line", Foreign(verb, kind, {"argv": arguments}, agent == OURS), done.stdout)


def _as_one_agent(fields: Fields) -> Fields:
    """Also for the verbs of a host, whose agent is another."""
    return {**fields, "agentId": OURS} if "agentId" in fields else fields


def reads(planted: Planted) -> list[tuple[str, Fields]]:
    """What shows an agent what it has."""
    shown = ("getCompressedContext", "expand", "summaries", "recall", "lessons", "log", "entries", "export")
    return [(verb, fields) for verb, fields in samples(planted).items() if verb in shown]


class State(NamedTuple):
    """What an agent has, and who touched it."""

    records: list[Any]
    lessons: list[Any]
    pinned: list[Any]
    summaries: list[Any]
    actors: dict[str, int]


def state_of(daemon: Daemon, agent_id: str) -> State:
    owner = {"agentId": agent_id}
    records, after = [], None
    while True:
        page = asked(daemon, "export", **owner, **({"after": after} if after else {}))
        records += page["records"]
        if (after := page.get("next")) is None:
            break
    events = asked(daemon, "audit", **owner, limit=1_000)["events"]
    return State(
        records=records,
        lessons=asked(daemon, "lessons", **owner)["lessons"],
        pinned=[entry["id"] for entry in asked(daemon, "entries", **owner)["entries"]],
        summaries=[summary["id"] for summary in asked(daemon, "summaries", **owner)["summaries"]],
        actors=dict(Counter(event["actor"] for event in events)),
    )


def changes(before: State, after: State) -> list[str]:
    found = [
        f"the other agent's {name} changed"
        for name in ("records", "lessons", "pinned", "summaries")
        if getattr(before, name) != getattr(after, name)
    ]
    strangers = {actor: times for actor, times in after.actors.items() if actor not in before.actors}
    return [*found, *([f"in the other agent's chain: {strangers}"] if strangers else [])]


# ── the other surfaces ────────────────────────────────────────────────────────────────────────


def mcp_requests(theirs: Planted) -> Iterator[tuple[str, str, str, Fields]]:
    """Verb, kind of id, method and parameters."""
    needed: dict[str, Fields] = {
        "memory_recall": {"query": "What do I like?"},
        "memory_record": {"role": "user", "content": "This is ours."},
        "memory_forget": {"confirm": True, "reason": "a trial"},
    }
    for tool, told in TOOLS.items():
        verb, given = MCP_VERBS[tool], needed.get(tool, {})
        yield verb, "agent", "tools/call", {"name": tool, "arguments": {**given, "agentId": theirs.agent_id}}
        for field in fields_of(told.takes):  # type: ignore[arg-type]
            for kind, value in kinds_of(verb, field) or []:
                arguments = {**given, "agentId": OURS, field: value(theirs)}
                if field == "sessionId" and verb == "expand":
                    arguments |= {"firstSeq": 1, "lastSeq": theirs.last_seq}
                if field == "messageIds":
                    arguments["sessionId"] = theirs.session_id
                for agent in (OURS, theirs.agent_id):
                    yield verb, kind, "tools/call", {"name": tool, "arguments": {**arguments, "agentId": agent}}
    for verb, kind, address in (
        ("getCompressedContext", "session", f"sessions/{theirs.session_id}"),
        ("getCompressedContext", "session", f"sessions/agent%3A{theirs.agent_id}%3Amain"),
        ("summaries", "summary", f"summaries/{theirs.summary_id}"),
        ("lessons", "lesson", "lessons"),
        ("sessions", "session", "sessions"),
    ):
        yield verb, kind, "resources/read", {"uri": f"offbook://{address}"}
    handover = {"name": "handover", "arguments": {"sessionId": theirs.session_id, "about": theirs.words[0]}}
    yield "prepareTurn", "session", "prompts/get", handover


def command_lines(theirs: Planted) -> Iterator[tuple[str, str, list[str]]]:
    """Verb, kind of id and the command, for an agent that is named behind it."""
    session, words = theirs.session_id, theirs.words[0]
    yield "log", "session", ["log", session, "--after", "0"]
    yield "getCompressedContext", "session", ["context", session]
    yield "swap", "session", ["swap", session, "--used-tokens", "170000", "--context-window", "200000", "--full"]
    yield "expand", "session", ["expand", "--session", session, "--from", "1", "--to", "40"]
    yield "expand", "summary", ["expand", theirs.summary_id]
    yield "expand", "lesson", ["expand", theirs.lesson_id]
    yield "recall", "words", ["recall", words, "--scope", "all"]
    yield "recall", "session", ["recall", "aunt", "Greta", "--session", session, "--scope", "session"]
    yield "prepareTurn", "session", ["turn", session, "Where", "does", "Greta", "live?", "--text"]
    yield "topics", "session", ["topics", "--session", session]
    yield "anchors", "session", ["anchors", "--session", session]
    yield "state", "session", ["state", "--session", session]
    yield "lessons", "lesson", ["lessons", "show", theirs.lesson_id]
    yield "lessons/judge", "lesson", ["lessons", "reject", theirs.lesson_id]
    yield "pin", "entry", ["pin", theirs.entry_id]
    yield "unpin", "entry", ["unpin", theirs.entry_id]
    yield "unlink", "entry", ["unlink", theirs.entry_id]
    yield "entries", "entry", ["entries", theirs.entry_id]
    yield "sessions", "session", ["sessions"]
    yield "activity", "agent", ["activity"]
    yield "status", "agent", ["status"]
    yield "summaries", "session", ["inspect", "--session", session, "--all", "--full"]
    yield "compress", "session", ["compress", "--session", session, "--yes", "--no-wait"]
    yield "replay", "session", ["replay", session, "--at", "2100-01-01"]
    yield "audit", "session", ["audit", "--session", session]
    yield "export", "agent", ["export", "--json"]
    yield "reindex", "agent", ["reindex"]
    yield "maintain", "agent", ["maintain"]
    yield "hooks/session-end", "session", ["end", session]
    yield "forget", "entry", ["forget", theirs.entry_id, "--yes", "--reason", "a trial"]
    yield "forget", "words", ["forget", "--matching", words, "--yes", "--reason", "a trial"]
    yield "forget/verify", "receipt", ["forget", "--verify", theirs.receipt_id]
    yield "cross", "agent", ["cross", "on"]


def tried(folder: Path, *, is_quick: bool = False) -> Tried:
    tally = Isolation(folder, is_quick=is_quick).run()
    verbs = [*VERBS, *sorted({verb for asked in tally.asked.values() for verb in asked} - VERBS.keys())]
    rows: list[dict[str, Cell]] = [
        {
            "verb": verb,
            "another's": ", ".join(sorted(tally.kinds[verb])),
            **{surface: tally.asked[surface][verb] or "" for surface in SURFACES},
        }
        for verb in verbs
        if tally.kinds[verb]
    ]
    requests_made = {surface: sum(tally.asked[surface].values()) for surface in SURFACES}
    total = sum(requests_made.values())
    return Tried(
        size=f"{total:,} requests with something of another agent's",
        seed=None,
        figures={
            **requests_made,
            "leaks and changes": len(tally.wrong),
            "verbs that show it to its owner": tally.shown_to_its_owner,
        },
        wrong=tally.wrong,
        matrix=rows,
    )
