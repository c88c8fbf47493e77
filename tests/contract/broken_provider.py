"""A provider in memory that keeps the contract, except for the one defect it is given.

Written apart from ours on purpose: that it passes shows that the suite asks for the contract and not for our way of
keeping it; that each defect is caught shows that the checks can fail.
"""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec

from offbook.api import agent_requests, session_requests, wire
from offbook.api.verbs import VERBS
from offbook.client.endpoint import Endpoint
from offbook.ingest.scope import agent_in, checked_key, resolve_agent, resolve_scope
from offbook.model.content import render, tool_calls, tool_results
from offbook.model.errors import (
    Forbidden,
    NotFound,
    OffbookError,
    TooLarge,
    Unauthorized,
    UnknownVerb,
    WrongMethod,
    WrongShape,
)
from offbook.model.memory_entry import MemoryEntry
from offbook.model.overview import Activity, Day, EntryList, SessionPage, SessionView
from offbook.model.status import AuditReport
from offbook.model.summary import Expansion, Ledger, SourceLine, SourceSpan, Swap
from offbook.model.types import (
    MAX_AGENT_BYTES,
    AuditEvent,
    AuditHead,
    CompressedContext,
    Message,
    Part,
    Receipt,
    Scope,
    Span,
)

TOKEN = "the-right-token"
MOST_BYTES = 16 * 1024 * 1024
BEGINNING = datetime(2024, 1, 1, tzinfo=UTC)
NOT_IN_THE_CONTRACT = {
    *("cross", "reindex", "log", "missing", "summaries", "compress", "replay"),
    *("jobs/claim", "jobs/complete", "jobs/fail"),
    *("forget/verify", "maintain", "export", "import"),
    *("enrich", "topics", "anchors", "state", "config", "lessons", "lessons/judge"),
}
DUE_SHARE, TARGET_SHARE = 0.85, 0.4
CHARS_PER_TOKEN = 4
OPEN, CLOSE = "<remembered>", "</remembered>"


class BrokenProvider:
    def __init__(self, defect: str = "") -> None:
        self.defect = defect
        self.missing: frozenset[str] = frozenset()
        """Verbs it does not have."""
        self.log: dict[Scope, list[Message]] = {}
        self.chains: dict[str, list[AuditEvent]] = {}
        self.pinned: set[str] = set()
        self.swaps: dict[Scope, tuple[Any, Swap]] = {}
        """The last one of each session, with what it was asked for."""
        self.summaries: dict[tuple[str, str], SourceSpan] = {}
        """What each stands for, by agent and id."""
        self.stable: dict[Scope, str] = {}
        """The memory section of each session since its last swap."""
        self.not_gone: dict[tuple[Scope, int], Message] = {}
        self.handed_out: set[str] = set()
        """Sections, which a host may send back."""
        self.messages_ever = self.retries_ever = self.turns_ever = 0

    # ── HTTP ──

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept open until a request that is not read to its end."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            is_whole = True
            while is_whole:
                head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                size = int(headers.get("content-length", "0"))
                is_whole = size <= MOST_BYTES
                body = await reader.readexactly(size) if is_whole else None
                method, path, _ = head.split(" ")
                status, content_type, content = await self.answered(method, path, headers, body)
                kept = f"HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\ncontent-length: {len(content)}\r\n\r\n"
                writer.write(kept.encode() + content)
                await writer.drain()
        writer.close()

    async def answered(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> tuple[int, str, bytes]:
        if self.defect == "talks nonsense":
            return 200, "application/json", b'["nonsense", {"text": 7}]'
        try:
            answer = await self.answer(method, path, headers, body)
        except OffbookError as error:
            return self.refusal(error)
        return 200, "application/json", msgspec.json.encode(answer)

    def refusal(self, error: OffbookError) -> tuple[int, str, bytes]:
        status, problem = error.status, error.problem()
        if self.defect == "takes anything":
            return 200, "application/json", b"{}"
        if self.defect == "refuses in plain text":
            return status, "text/plain", error.detail.encode()
        if self.defect == "fails over bad input":
            status = problem["status"] = 500
        if self.defect == "says another status":
            problem["status"] = 418
        if self.defect == "does not say whether to retry":
            del problem["retryable"]
        if self.defect == "names no field":
            problem["detail"] = "something is wrong"
        if self.defect == "calls everything a bad request":
            status = problem["status"] = 400
        return status, "application/problem+json", msgspec.json.encode(problem)

    async def answer(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> Any:
        if headers.get("host", "").split(":")[0] != "127.0.0.1" or "origin" in headers:
            raise Forbidden("not from here")
        if headers.get("authorization") != f"Bearer {TOKEN}":
            raise Unauthorized()
        verb = path.removeprefix("/v1/")
        if not path.startswith("/v1/") or verb not in VERBS.keys() - self.missing - NOT_IN_THE_CONTRACT:
            raise UnknownVerb(path)
        if method != "POST" and (method, verb) != ("GET", "ping"):
            raise WrongMethod(method)
        if body is None:
            raise TooLarge("too much")
        return await getattr(self, verb.replace("hooks/", "").replace("-", "_"))(self.decoded(verb, body))

    def decoded(self, verb: str, body: bytes) -> Any:
        try:
            return wire.decode_request(verb, body)
        except OffbookError:
            if self.defect == "stores what it refuses":
                self.log[next(reversed(self.log))].append(Message(role="user", content="garbage"))
            if self.defect == "pins what it refuses" and verb == "pin":
                self.pinned |= {_name(scope, seq) for scope, log in self.log.items() for seq, _ in enumerate(log, 1)}
            if self.defect == "swaps what it refuses" and verb == "swap":
                self.take(next(reversed(self.log)), 1, 1)
            if self.defect == "forgets what it refuses" and verb == "forget":
                self.erase(next(reversed(self.log)), 1)
            raise

    # ── the record ──

    def scope(self, request: Any) -> Scope:
        default = "nobody"
        if self.defect == "takes keys of any length":
            return Scope(agent_id=request.agent_id or default, session_id=request.session_id)
        if self.defect == "ignores the agent in the key":
            return Scope(agent_id=request.agent_id or default, session_id=request.session_id)
        if self.is_long_for_nobody(request.session_id):
            return Scope(agent_id=request.agent_id or default, session_id=request.session_id)
        scope = resolve_scope(request.session_id, request.agent_id, default)
        return Scope(agent_id="all", session_id=scope.session_id) if self.defect == "shares sessions" else scope

    def is_long_for_nobody(self, session_id: str | None) -> bool:
        return self.defect == "takes a long name for nobody" and len(agent_in(session_id) or "") > MAX_AGENT_BYTES

    async def onMessage(self, request: session_requests.OnMessage) -> Receipt:  # noqa: N802 - the verb's name
        scope, messages = self.scope(request), request.arguments()["messages"]
        if self.defect == "reverses a batch":
            messages = messages[::-1]
        receipt = await self.store(scope, messages)
        self.chain(self.agent(request), "onMessage", scope.session_id)
        return receipt

    async def store(self, scope: Scope, messages: list[Message]) -> Receipt:
        log = self.log.setdefault(scope, [])
        known = {message.id: seq for seq, message in enumerate(log, 1) if message.id is not None}
        if self.defect == "is slow between looking and storing":
            await asyncio.sleep(1.0)
        seqs, accepted = [], 0
        for message in messages:
            if message.id in known and self.defect != "doubles retries":
                seqs.append(known[message.id])
                self.retries_ever += 1
                if self.defect == "overwrites":
                    log[known[message.id] - 1] = message
                continue
            accepted += 1
            self.messages_ever += 1
            is_lost = self.defect == "loses one in a hundred" and self.messages_ever % 100 == 0
            is_merged = self.defect == "merges equal messages" and message in log
            if not is_lost and not is_merged:
                log.append(self.kept(message))
            seqs.append(len(log))
            if message.id is not None and self.defect != "looks for ids before the batch only":
                known[message.id] = len(log)
        if self.defect == "counts from zero":
            seqs = [seq - 1 for seq in seqs]
        return Receipt(accepted=accepted, duplicates=len(messages) - accepted, first_seq=min(seqs), last_seq=max(seqs))

    def kept(self, message: Message) -> Message:
        content: Any = message.content
        if self.defect == "normalises text" and isinstance(content, str):
            content = unicodedata.normalize("NFC", content)
        elif self.defect == "cuts at NUL" and isinstance(content, str):
            content = content.split("\x00")[0]
        elif self.defect == "cuts long texts" and isinstance(content, str):
            content = content[:1_000_000]
        elif self.defect == "drops unknown blocks" and isinstance(content, list):
            content = [block for block in content if block.get("type") != "hologram"]
        elif self.defect == "keeps results as text" and message.role == "tool":
            return Message(role="user", content=render(message))
        elif self.defect == "drops meta":
            return msgspec.structs.replace(message, meta=None)
        return msgspec.structs.replace(message, content=content)

    async def pre_compaction(self, request: session_requests.PreCompaction) -> dict[str, int]:
        scope, given = self.scope(request), request.messages or []
        log = self.log.get(scope, [])
        anonymous = [message for message in given if message.id is None]
        overlap = next(
            size
            for size in range(min(len(log), len(anonymous)), -1, -1)
            if size == 0 or log[-size:] == anonymous[:size]
        )
        fresh = anonymous if self.defect == "does not know messages by their place" else anonymous[overlap:]
        ids = {message.id for message in log}
        is_new = self.defect == "saves everything again"
        named = [message for message in given if message.id is not None and (is_new or message.id not in ids)]
        self.chain(self.agent(request), "hooks/pre-compaction", scope.session_id)
        if self.defect == "saves known sessions only" and not log:
            return {"saved": 0}
        if self.defect == "saves everything again":
            log.extend(named)
        elif named or fresh:
            await self.store(scope, [*named, *fresh])
        return {"saved": len(named) + len(fresh)}

    # ── contexts ──

    async def getCompressedContext(self, request: session_requests.GetCompressedContext) -> CompressedContext:  # noqa: N802
        scope = self.scope(request)
        self.chain(self.agent(request), "getCompressedContext", scope.session_id)
        return self.context(scope, request.max_chars, self.agent(request))

    def context(self, scope: Scope, max_chars: int, agent_id: str) -> CompressedContext:
        log = self.log.get(scope, [])
        if self.defect == "shows the context of before":
            log = log[:-1]
        first = self.first_shown(log, max_chars)
        shown = [self.shown(message) for message in log[first:]]
        if self.defect == "paraphrases the newest" and shown:
            shown[-1] = msgspec.structs.replace(shown[-1], content=str(shown[-1].content)[:-1] + ".")
        if self.defect == "summarises where there is room" and len(shown) > 10 and max_chars > 50_000:
            first, shown = first + 5, shown[5:]
        text = "\n".join(map(_line, shown))
        parts = [self.summary(scope, first)] if first else []
        if self.defect == "leaves a gap" and first > 1:
            parts = [Part(kind="summary", first_seq=1, last_seq=first - 1, chars=0)]
        if self.defect == "overlaps" and first and shown:
            parts = [Part(kind="summary", first_seq=1, last_seq=first + 1, chars=0)]
        if shown:
            parts.append(Part(kind="verbatim", first_seq=first + 1, last_seq=len(log), chars=len(text)))
        return CompressedContext(
            session_id=scope.session_id,
            agent_id=agent_id,
            generation=self.generation(scope),
            text=text,
            messages=shown,
            chars=len(text.encode()) if self.defect == "counts bytes" else len(text),
            max_chars=max_chars,
            covers=Span(first_seq=1, last_seq=len(log)),
            parts=parts,
            built_at=datetime.now(UTC) if self.defect == "reads the clock" else BEGINNING,
        )

    def first_shown(self, log: list[Message], max_chars: int) -> int:
        first, room = len(log), max_chars + (3 if self.defect == "goes a little over" else 1)
        while first and (room := room - len(_line(self.shown(log[first - 1]))) - 1) >= 0:
            first -= 1
        if self.defect == "always shows the newest" and first == len(log) > 0:
            return first - 1
        while first < len(log) and tool_results(log[first]) and self.defect != "cuts between call and result":
            first += 1
        return first

    def shown(self, message: Message) -> Message:
        is_orphan = "never-called" in tool_results(message) and not tool_calls(message)
        if is_orphan and self.defect != "shows results nobody asked for":
            return Message(role="user", content=render(message))
        if isinstance(message.content, list) and self.defect != "hands on signed reasoning":
            kept = [block for block in message.content if block.get("type") != "thinking"]
            return msgspec.structs.replace(message, content=kept)
        return message

    def summary(self, scope: Scope, last_seq: int) -> Part:
        """A name for what is not shown, the same whenever it is asked for."""
        span = SourceSpan(session_id=scope.session_id, first_seq=1, last_seq=last_seq)
        ids = [summary_id for (agent_id, summary_id), known in self.summaries.items()
               if (agent_id, known) == (scope.agent_id, span)]  # fmt: skip
        summary_id = ids[0] if ids else f"L1-{len(self.summaries) + 1:04}"
        self.summaries[scope.agent_id, summary_id] = span
        return Part(kind="summary", first_seq=1, last_seq=last_seq, chars=0, id=summary_id, level=1)

    def generation(self, scope: Scope) -> int:
        if self.defect == "counts other sessions in":
            return self.messages_ever
        if self.defect == "counts retries in":
            return self.retries_ever
        if self.defect == "counts the swaps of all agents":
            return sum(swap.generation for _, swap in self.swaps.values())
        return self.swaps[scope][1].generation if scope in self.swaps else 0

    async def session_start(self, request: session_requests.SessionStart) -> CompressedContext | None:
        scope = self.scope(request)
        self.chain(self.agent(request), "hooks/session-start", scope.session_id)
        if not self.log.get(scope) and self.defect != "knows every session":
            return None
        return self.context(scope, request.max_chars or 100_000, self.agent(request))

    async def session_end(self, request: session_requests.SessionEnd) -> dict[str, bool]:
        self.chain(self.agent(request), "hooks/session-end", request.session_id)
        return {"ok": self.defect != "cannot end a session"}

    async def post_compaction(self, request: session_requests.PostCompaction) -> dict[str, bool]:
        self.chain(self.agent(request), "hooks/post-compaction", request.session_id)
        if self.defect == "stores the new context" and request.new_context:
            await self.store(self.scope(request), [Message(role="system", content=str(request.new_context))])
        return {"ok": True}

    # ── swaps, and what is behind them ──

    async def swap(self, request: session_requests.TakeSwap) -> Swap:
        scope = self.scope(request)
        for _ in range(2 if self.defect == "records two events of a swap" else 1):
            self.chain(self.agent(request), "swap", scope.session_id)
        share = request.used_tokens / request.context_window
        is_due = share >= (0.4 if self.defect == "swaps too early" else DUE_SHARE)
        is_forced = request.force and self.defect != "cannot be forced"
        if not self.log.get(scope) or not (is_due or is_forced):
            reason = "" if self.defect == "gives no reason" else "it is not due"
            shown = self.log.get(scope, []) if self.defect == "hands over what it did not swap" else []
            return _swap(False, reason, self.generation(scope), shown, request.used_tokens, request.used_tokens)
        asked = (len(self.log[scope]), request.used_tokens, request.context_window)
        known, answer = self.swaps.get(scope, (None, None))
        if answer is not None and self.defect == "swaps once only":
            return answer
        if answer is None or known != asked or self.defect == "swaps again and again":
            answer = self.take(scope, request.used_tokens, request.context_window)
        return answer

    def take(self, scope: Scope, used_tokens: int, context_window: int) -> Swap:
        log = self.log[scope]
        share = 1.0 if self.defect == "swaps in nearly everything" else TARGET_SHARE
        context = self.context(scope, int(context_window * share * CHARS_PER_TOKEN), scope.agent_id)
        messages, parts = context.messages, context.parts
        if self.defect == "hands over everything":
            messages = log
        elif self.defect == "hands over what others said" and (others := self.others(scope)):
            messages = [*others, *messages]
        elif self.defect == "leaves out the newest":
            messages = messages[:-1]
        elif self.defect == "hands over results without calls":
            messages = [message for message in messages if not tool_calls(message)]
        elif self.defect == "accounts for half of it":
            parts = parts[1:]
        answer = _swap(
            True,
            "it is due",
            self.generation(scope) + (0 if self.defect == "stays at its generation" else 1),
            messages,
            0 if self.defect == "does not know what was in use" else used_tokens,
            context.chars // CHARS_PER_TOKEN,
            Ledger(
                verbatim=[part for part in parts if part.kind == "verbatim"],
                summaries=[part for part in parts if part.kind == "summary"],
            ),
        )
        self.swaps[scope] = (len(log), used_tokens, context_window), answer
        self.stable.pop(scope, None)
        if self.defect == "drops what it swapped out":
            self.log[scope] = log[-len(messages) :]
        return answer

    def others(self, scope: Scope) -> list[Message]:
        """What other agents said in sessions of the same key."""
        logs = [log for other, log in self.log.items() if other != scope and other.session_id == scope.session_id]
        return [message for log in logs for message in log]

    async def expand(self, request: agent_requests.Expand) -> Expansion:
        span = request.arguments()["span"]
        agent_id = resolve_agent(span.session_id if span else None, request.agent_id, "nobody")
        if (span is None) == (request.summary_id is None):
            raise WrongShape("one of them")
        if span is None:
            span = self.behind(agent_id, request.summary_id or "")
        checked_key(span.session_id, "sessionId", 512)
        lines = self.lines(agent_id, span)
        if request.after is not None:
            if not request.after.isdigit():
                raise WrongShape("nowhere")
            lines = [line for line in lines if line.seq > int(request.after)]
        if self.defect != "records no expansions":
            self.chain(agent_id, "expand", span.session_id)
        shown = lines if self.defect == "gives all pages at once" else lines[: request.limit]
        has_more = len(shown) < len(lines) and self.defect != "ends after a page"
        return Expansion(spans=[span], messages=shown, next=str(shown[-1].seq) if has_more else None)

    def behind(self, agent_id: str, summary_id: str) -> SourceSpan:
        owners = [agent_id]
        if self.defect == "expands for anybody":
            owners += [owner for owner, known in self.summaries if known == summary_id]
        found = [self.summaries[owner, summary_id] for owner in owners if (owner, summary_id) in self.summaries]
        if not found:
            raise NotFound(summary_id)
        return found[0]

    def lines(self, agent_id: str, span: SourceSpan) -> list[SourceLine]:
        log = self.log.get(Scope(agent_id=agent_id, session_id=span.session_id), [])
        if not log and self.defect == "expands for anybody":
            log = next((log for scope, log in self.log.items() if scope.session_id == span.session_id), [])
        first = span.first_seq
        if self.defect == "expands to half of it" and span.last_seq - first > 100:
            first = span.last_seq // 2
        lines = [
            SourceLine(session_id=span.session_id, seq=seq, received_at=BEGINNING, message=self.expanded(known))
            for seq, message in enumerate(log, 1)
            for known in [self.not_gone.get((Scope(agent_id=agent_id, session_id=span.session_id), seq), message)]
            if first <= seq <= span.last_seq
        ]
        return lines[::-1] if self.defect == "expands backwards" else lines

    def expanded(self, message: Message) -> Message:
        if self.defect != "expands to plain text":
            return message
        return msgspec.structs.replace(message, content=render(message))

    # ── turns ──

    async def prepareTurn(self, request: session_requests.PrepareTurn) -> dict[str, Any]:  # noqa: N802
        scope = self.scope(request)
        if self.defect == "needs a prompt" and not request.prompt.strip():
            raise WrongShape("no prompt")
        if self.defect == "prepares known sessions only" and scope not in self.log:
            raise NotFound("no such session")
        for _ in range(2 if self.defect == "records a turn twice" else 1):
            self.chain(self.agent(request), "prepareTurn", scope.session_id)
        if self.defect == "records prompts":
            await self.store(scope, [Message(role="user", content=request.prompt)])
        budget = max(2_000, ((request.context_window or 200_000) - (request.current_tokens or 0) - 12_000) // 5)
        entries, recall = self.search_for_turn(scope, request.prompt, budget * CHARS_PER_TOKEN)
        memory = self.memory(scope)
        self.handed_out |= {memory, recall} - {""}
        tokens: dict[str, Any] = {
            "memory": len(memory) // CHARS_PER_TOKEN + 1,
            "recall": -(-len(recall) // CHARS_PER_TOKEN),
            "budget": 37_600 if self.defect == "has one budget for every window" else budget,
        }
        if self.defect == "counts fewer tokens than it takes":
            tokens["recall"] //= 10
        if self.defect == "counts in fractions":
            tokens["recall"] += 0.5
        if self.defect == "tells what it does not show":
            entries = []
        intent = "" if self.defect == "has no intent" else "plain"
        turn = {"memory": memory, "recall": recall, "tokens": tokens, "entries": entries, "intent": intent}
        self.turns_ever += 1
        if self.defect == "is late now and then, and says so" and self.turns_ever % 2:
            turn |= {"recall": "", "tokens": tokens | {"recall": 0}, "entries": [], "degraded": ["recall: late"]}
        return turn

    def search_for_turn(self, scope: Scope, prompt: str, room: int) -> tuple[list[dict[str, Any]], str]:
        """The best that fit, in order of time, and how they are told."""
        words = [word for each in prompt.split() if (word := each.strip(".,:?!"))]
        found = [
            self.entry(owner, seq, words) | {"text": text}
            for owner, seq in self.mindable(scope)
            if (text := self.own(str(self.log[owner][seq - 1].content))) and any(word in text for word in words)
        ]
        found.sort(key=lambda entry: -entry["score"])
        kept: list[dict[str, Any]] = []
        room -= len(OPEN) + len(CLOSE) + 1
        for entry in found:
            room -= len(self.told(entry)) + 1
            if room < 0 and self.defect != "forgets its budget":
                break
            kept.append(entry)
        if self.defect != "gives the best first":
            kept.sort(key=lambda entry: entry["ts"])
        if self.defect == "minds without tiers":
            kept = [{key: value for key, value in entry.items() if key != "tier"} for entry in kept]
        return kept, self.framed(list(map(self.told, kept)))

    def mindable(self, scope: Scope) -> list[tuple[Scope, int]]:
        newest = 1 if self.defect == "minds it a message later" else 0
        return [
            (owner, seq)
            for owner, log in self.log.items()
            if owner.agent_id == scope.agent_id or self.defect == "minds what others said"
            for seq in range(1, len(log) + 1 - newest)
        ]

    def told(self, entry: dict[str, Any]) -> str:
        return "- something" if self.defect == "shows what it does not tell" else f"- {self.quoted(entry['text'])}"

    def own(self, text: str) -> str:
        """The text without what we had shown."""
        if self.defect == "takes back what it showed":
            return text
        for section in self.handed_out:
            text = text.replace(section, "").strip()
        return text

    def framed(self, lines: list[str]) -> str:
        return "\n".join(lines if self.defect == "has no frames" or not lines else [OPEN, *lines, CLOSE])

    def quoted(self, text: str) -> str:
        return text if self.defect == "lets a quote end its frame" else text.replace(CLOSE, "(/remembered)")

    def memory(self, scope: Scope) -> str:
        """Who they are: what an agent was told of it when the section was made."""
        if scope not in self.stable or self.defect == "writes its memory anew":
            texts = [str(message.content) for owner, log in self.log.items() if owner.agent_id == scope.agent_id
                     for message in log]  # fmt: skip
            who = [f"- {self.quoted(self.own(text))}" for text in texts if text.startswith("My name is")]
            self.stable[scope] = self.framed(who)
        return self.stable[scope]

    # ── what is known ──

    async def ping(self, _: session_requests.Ping) -> dict[str, Any]:
        health = {"ok": True, "latencyMs": 0, "version": "1", "store": "memory", "model": None, "backlog": 0}
        return health | ({"backlog": None} if self.defect == "does not know its backlog" else {})

    async def recall(self, request: session_requests.Recall) -> dict[str, Any]:
        scope, words = self.scope(request), request.query.split()
        self.chain(self.agent(request), "recall", scope.session_id)
        places = [(owner, seq) for owner, log in self.log.items() for seq in range(1, len(log) + 1)]
        found = [
            entry
            for owner, seq in places
            if self.may_recall(scope, owner, request.reach)
            and any(word in str(self.log[owner][seq - 1].content) for word in words)
            and (entry := self.entry(owner, seq, words))
            and (request.at is None or self.defect == "knows the future" or entry["ts"] <= request.at)
        ]
        found.sort(key=lambda entry: -entry["score"])
        if self.defect == "gives the worst first":
            found.reverse()
        if self.defect == "recalls all there is":
            request = msgspec.structs.replace(request, limit=1_000)
        if self.defect == "finds less in depth" and request.depth == "deep":
            found = found[:1]
        if self.defect == "recalls ASCII only":
            found = [entry for entry in found if request.query.isascii()]
        if self.defect == "scores in words":
            found = [entry | {"score": "good"} for entry in found]
        if self.defect == "recalls without tiers":
            found = [{key: value for key, value in entry.items() if key != "tier"} for entry in found]
        entries = [] if self.defect == "recalls later" else found[: request.limit]
        return {"entries": entries, "tookMs": 0, "degraded": []}

    def may_recall(self, asking: Scope, owner: Scope, reach: str) -> bool:
        if reach == "session" and self.defect != "recalls whatever the scope":
            is_near = owner.session_id == asking.session_id
        else:
            is_near = self.defect != "recalls this session only" or owner.session_id == asking.session_id
        is_leak = self.defect == "recalls from all agents" and reach == "all"
        return is_near and (is_leak or owner.agent_id == asking.agent_id)

    def entry(self, owner: Scope, seq: int, words: list[str]) -> dict[str, Any]:
        message = self.log[owner][seq - 1]
        last_seq = seq + 5 if self.defect == "spans beyond the session" else seq
        return {
            "id": _name(owner, seq),
            "agentId": owner.agent_id,
            "sessionId": owner.session_id,
            "text": str(message.content),
            "ts": message.ts or datetime.now(UTC),
            "score": sum(word in str(message.content) for word in words) / len(words),
            "foundBy": ["text"],
            "span": {"firstSeq": seq, "lastSeq": last_seq},
            "tier": "hot",
            "pinned": _name(owner, seq) in self.pinned and self.defect != "forgets pins",
            "origin": message.role,
        }

    async def pin(self, request: agent_requests.Pin) -> dict[str, Any]:
        meant = self.meant(request, "pin") - self.pinned
        self.pinned |= meant
        return {"changed": len(meant), "entryIds": sorted(meant)}

    async def unpin(self, request: agent_requests.Unpin) -> dict[str, Any]:
        meant = self.meant(request, "unpin") & self.pinned
        if self.defect != "keeps pins for ever":
            self.pinned -= meant
        return {"changed": len(meant), "entryIds": sorted(meant)}

    async def unlink(self, request: agent_requests.Unlink) -> dict[str, Any]:
        self.chain(self.agent(request), "unlink")
        return {"changed": 1 if self.defect == "unlinks what was never linked" else 0}

    def meant(self, request: agent_requests.Pin, verb: str) -> set[str]:
        agent_id = self.agent(request)
        self.chain(agent_id, verb, request.session_id)
        return {
            name
            for scope, log in self.log.items()
            for seq, message in enumerate(log, 1)
            for name in [_name(scope, seq)]
            if (scope.agent_id == agent_id or self.defect == "pins for anybody")
            and (request.entry_ids is None or name in request.entry_ids)
            and (request.session_id is None or scope.session_id == request.session_id)
            and (request.keyword is None or request.keyword in str(message.content))
        }

    # ── forgetting ──

    async def forget(self, request: agent_requests.Forget) -> dict[str, Any]:
        if sum(each is not None for each in (request.entry_ids, request.session_id, request.matching)) != 1:
            raise WrongShape("one of them")
        agent_id = self.agent(request)
        self.chain(agent_id, "forget", request.matching if self.defect == "tells its audit what it forgot" else None)
        meant = [
            (scope, seq)
            for scope, log in self.log.items()
            for seq, message in enumerate(log, 1)
            if (scope.agent_id == agent_id or self.defect == "forgets for anybody")
            and (request.entry_ids is None or _name(scope, seq) in request.entry_ids)
            and (request.session_id is None or scope.session_id == request.session_id)
            and (request.matching is None or request.matching in str(message.content))
        ]
        if self.defect == "forgets the neighbours":
            meant += [(scope, seq - 1) for scope, seq in meant if seq > 1]
        if (not request.dry_run or self.defect == "forgets in a dry run") and self.defect != "forgets nothing":
            for scope, seq in meant:
                self.erase(scope, seq)
        return {} if self.defect == "gives no receipt" else {"receipt": {"messages": len(meant)}}

    def erase(self, scope: Scope, seq: int) -> None:
        log = self.log[scope]
        message = log[seq - 1]
        if self.defect == "expands what it forgot":
            self.not_gone[scope, seq] = message
        content: Any = "(gone)"
        if isinstance(message.content, list) and self.defect != "forgets calls whole":
            content = [{**block, "arguments": {}} for block in message.content if block.get("type") == "tool-call"]
        kept_id = None if self.defect == "takes back what it forgot" else message.id
        log[seq - 1] = Message(role=message.role, content=content, id=kept_id, tool_call_id=message.tool_call_id)
        self.swaps.pop(scope, None)
        if self.defect != "minds its old memory":
            self.stable.clear()

    async def status(self, request: agent_requests.GetStatus) -> dict[str, Any]:
        agent_id = self.agent(request)
        self.chain(agent_id, "status")
        shared = self.defect in ("counts all agents", "shares sessions")
        logs = [log for scope, log in self.log.items() if shared or scope.agent_id == agent_id]
        status = {"counts": {"messages": sum(map(len, logs))}, "tiers": {}, "backlog": 0, "costs": {}, "capture": {}}
        if self.defect == "shows the newest of all agents":
            status["newest"] = [log[-1].content for log in self.log.values() if log]
        if self.defect == "has no tiers":
            del status["tiers"]
        return status

    async def sessions(self, request: agent_requests.GetSessions) -> SessionPage:
        agent_id = self.agent(request)
        self.chain(agent_id, "sessions")
        mine = [s for s in self.log if s.agent_id == agent_id or self.defect == "lists the sessions of all"]
        mine = mine if self.defect == "gives the oldest session first" else mine[::-1]
        named, part = request.session_id, request.matching or ""
        mine = [s for s in mine if named in (None, s.session_id) and part.lower() in s.session_id.lower()]
        shown = mine[request.after : request.after + request.limit]
        end = request.after + request.limit
        return SessionPage(
            sessions=[
                SessionView(session_id=scope.session_id, agent_id=agent_id, last_seq=len(self.log[scope]), chars=1,
                            generation=0, started_at=BEGINNING, last_at=BEGINNING, context_window=1)
                for scope in shown
            ],
            total=len(mine),
            next=end if end < len(mine) and self.defect != "knows no next page" else None,
        )  # fmt: skip

    async def activity(self, request: agent_requests.GetActivity) -> Activity:
        agent_id = self.agent(request)
        self.chain(agent_id, "activity")
        messages = sum(len(log) for scope, log in self.log.items() if scope.agent_id == agent_id)
        day = Day(day="2026-01-01", messages=messages, chars=1)
        days = [day] * (2 if self.defect == "counts a day twice" else 1) if messages else []
        return Activity(agent_id=agent_id, days=days)

    async def entries(self, request: agent_requests.GetEntries) -> EntryList:
        agent_id = self.agent(request)
        self.chain(agent_id, "entries")
        known = {
            _name(scope, seq): (scope, seq)
            for scope, log in self.log.items()
            for seq, _ in enumerate(log, 1)
            if scope.agent_id == agent_id or self.defect == "names entries to anybody"
        }
        asked = sorted(self.pinned) if request.entry_ids is None else request.entry_ids
        names = [name for name in asked if name in known]
        return EntryList(
            entries=[
                MemoryEntry(id=name, agent_id=agent_id, session_id=known[name][0].session_id, text="x", ts=BEGINNING,
                            score=0, found_by=[], span=Span(first_seq=known[name][1], last_seq=known[name][1]),
                            tier="hot", pinned=name in self.pinned, origin="user")
                for name in (sorted(names) if self.defect == "mixes up entries" else names)
            ]
        )  # fmt: skip

    async def audit(self, request: agent_requests.GetAudit) -> AuditReport:
        agent_id = self.agent(request)
        self.chain(agent_id, "audit", request.session_id)
        chain = self.chains.setdefault("all" if self.defect == "keeps one chain for all" else agent_id, [])
        if self.defect == "rewrites events" and len(chain) > 3:
            chain[0] = msgspec.structs.replace(chain[0], details={"rewritten": len(chain)})
        if self.defect == "answers with no session's events":
            request = agent_requests.GetAudit(limit=request.limit)
        events = [event for event in chain if request.session_id in (None, event.session_id)]
        if self.defect != "ignores the limit":
            events = events[-request.limit :] if self.defect != "gives the oldest" else events[: request.limit]
        head = AuditHead(seq=len(chain), hash=chain[-1].hash if chain else "")
        return AuditReport(events=events, head=head, verified=self.defect != "cannot verify")

    def agent(self, request: Any) -> str:
        is_nobodys = self.is_long_for_nobody(getattr(request, "session_id", None))
        if self.defect == "ignores the agent in the key" or is_nobodys:
            return request.agent_id or "nobody"
        return resolve_agent(getattr(request, "session_id", None), request.agent_id, "nobody")

    def chain(self, agent_id: str, verb: str, session_id: str | None = None) -> None:
        if (self.defect, verb) in (
            ("records no reads", "getCompressedContext"),
            ("records no status", "status"),
            ("records no audits", "audit"),
            ("records no recalls", "recall"),
            ("records no turns", "prepareTurn"),
            ("records no unlinking", "unlink"),
            ("records no forgetting", "forget"),
            ("records no glance", "activity"),
        ):
            return
        chain = self.chains.setdefault("all" if self.defect == "keeps one chain for all" else agent_id, [])
        for _ in range(2 if (self.defect, verb) in (("records twice", "onMessage"), ("pins twice", "pin")) else 1):
            previous = chain[-1].hash if chain and self.defect != "does not link" else ""
            seq = len(chain) + (2 if self.defect == "skips a number" and len(chain) > 3 else 1)
            digest = sha256(f"{previous}{agent_id}{seq}{verb}".encode()).hexdigest()
            event = AuditEvent(seq=seq, agent_id=agent_id, at=BEGINNING, verb=verb, actor="x", details={},
                               previous=previous, hash=digest, session_id=session_id)  # fmt: skip
            chain.append(event)


def _name(scope: Scope, seq: int) -> str:
    return sha256(f"{scope}#{seq}".encode()).hexdigest()[:32]


def _swap(
    swapped: bool,
    reason: str,
    generation: int,
    messages: list[Message],
    before: int,
    after: int,
    ledger: Ledger | None = None,
) -> Swap:
    return Swap(
        swapped=swapped,
        reason=reason,
        generation=generation,
        messages=messages,
        tokens_before=before,
        tokens_after=after,
        ledger=ledger or Ledger(),
        took_ms=0.1,
    )


def _line(message: Message) -> str:
    return f"{message.role}: {render(message)}"


@asynccontextmanager
async def serving(provider: BrokenProvider) -> AsyncIterator[Endpoint]:
    async with await asyncio.start_server(provider.serve, "127.0.0.1", 0) as server:
        yield Endpoint(scheme="http", host="127.0.0.1", port=server.sockets[0].getsockname()[1])
