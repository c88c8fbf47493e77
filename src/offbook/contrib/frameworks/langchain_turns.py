"""Messages of LangChain as messages of ours and back; and the turns of a thread, recorded and given memory.

The words and blocks are the content as they are; calls lie beside it, where OpenAI's dialect keeps them; what we have
no field for lies in `meta`. Left out is a tool's `artifact`, which no model is given and which need not be JSON.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from offbook.client.blocking_hot_swap import BlockingHotSwapSession
from offbook.client.messages import OPENING, message_of, to_openai
from offbook.contrib.frameworks.history_matcher import HistoryMatcher, Sessions, Taken
from offbook.model.content import CALL_ID_KEYS, first_of, is_call, render, tool_calls
from offbook.model.errors import InvalidInput, WrongShape
from offbook.model.types import MAX_KEY_BYTES, Block, Content, Message

MARK = "langchain"
_PLAIN = "isPlain"
"""In a block that stands for a string among blocks."""
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CLASSES: dict[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
}
_OWN_FIELDS = frozenset({"content", "id", "type", "name", "tool_call_id", "tool_calls", "artifact"})


def message_of_langchain(message: BaseMessage) -> Message:
    """What cannot be written as JSON is recorded as text: nothing that was said is left out."""
    kind = _kind_of(message)
    role = _ROLES.get(kind) or _role_of_chat(message)
    content = message.content if isinstance(message.content, str) else [_block(one) for one in message.content]
    labels = {"name": message.name, "toolCallId": getattr(message, "tool_call_id", None)}
    given = {name: value for name, value in labels.items() if value is not None and "\x00" not in value}
    fields = {"role": role, "content": content, "id": message_id_of(message), **given}
    beside = message.model_dump(exclude_defaults=True, exclude=set(_OWN_FIELDS))
    unfit = {name: value for name, value in labels.items() if name not in given and value is not None}
    meta: dict[str, Any] = {MARK: {"type": kind, "id": message.id, **beside, **unfit}}
    calls = [dict(call) for call in getattr(message, "tool_calls", None) or ()]
    # One with arguments that cannot be read is answered, too, and sent: its result needs it.
    calls += [{**call, "type": "tool_call"} for call in getattr(message, "invalid_tool_calls", None) or ()]
    if calls:
        in_blocks = {first_of(one, CALL_ID_KEYS) for one in content if isinstance(one, dict) and is_call(one)}
        is_told = all(call.get("id") in in_blocks for call in calls)
        (meta[MARK] if is_told else meta)["tool_calls"] = calls  # told twice, they would be two calls of one id
    try:
        return message_of({**fields, "meta": meta})
    except WrongShape:
        return message_of({**fields, "content": str(message.content), "meta": {MARK: {"type": kind}}})


def langchain_of(message: Message) -> BaseMessage:
    """A message that LangChain gave us, or one of ours as LangChain has it."""
    mark = (message.meta or {}).get(MARK)
    kind = mark.get("type") if isinstance(mark, dict) else None
    # One that was quoted since has no mark left, or another role.
    if not isinstance(mark, dict) or kind not in _CLASSES or _ROLES.get(kind, message.role) != message.role:
        made = convert_to_messages(to_openai([message]))
        return made[0] if len(made) == 1 else AIMessage(render(message))
    content = message.content if isinstance(message.content, str) else [_unblocked(one) for one in message.content]
    fields = {name: value for name, value in mark.items() if name not in ("type", "toolCallId")}
    if message.name is not None:
        fields["name"] = message.name
    if kind == "tool":
        fields["tool_call_id"] = message.tool_call_id or mark.get("toolCallId", "")
    calls = (message.meta or {}).get("tool_calls") or fields.pop("tool_calls", None)
    if calls:
        fields["tool_calls"] = [call for call in calls if isinstance(call.get("args"), dict)]
    return _CLASSES[kind](content=content, **fields)


def ids_in(messages: Sequence[BaseMessage]) -> list[str]:
    """The messages' own ids, as the provider takes them; for those that have none, what they say and how often it was
    said before."""
    times: Counter[str] = Counter()
    ids = []
    for message in messages:
        own = message_id_of(message)
        if own is None:
            own = _digest(f"{message.type}\n{message.content}\n{getattr(message, 'tool_call_id', '')}")
            times[own] += 1
            own = f"{own}:{times[own]}"
        ids.append(own)
    return ids


def message_id_of(message: BaseMessage) -> str | None:
    if message.id is None or (message.id and "\x00" not in message.id and len(message.id.encode()) <= MAX_KEY_BYTES):
        return message.id
    return _digest(message.id)


def _digest(text: str) -> str:
    return f"langchain:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _kind_of(message: BaseMessage) -> str:
    """A piece of a stream is a message of its kind."""
    return next((kind for kind, its_class in _CLASSES.items() if isinstance(message, its_class)), message.type)


def _role_of_chat(message: BaseMessage) -> str:
    role = getattr(message, "role", "")
    return role if role in ("user", "assistant", "system") else "user"


def _block(block: str | Mapping[Any, Any]) -> Block:
    return {"type": "text", "text": block, _PLAIN: True} if isinstance(block, str) else dict(block)


def _unblocked(block: Block) -> str | dict[str, Any]:
    return block["text"] if block.get(_PLAIN) is True and isinstance(block.get("text"), str) else block


# ── What LangGraph's hook and LangChain's middleware have in common ──
# A thread's messages recorded, and what the model is given in their place.


log = logging.getLogger("offbook.integrations")
ById = dict[str | None, BaseMessage]
Named = tuple[str | None, BaseMessage]


class _Thread:
    """What is known of a thread: its messages as they were first seen, by the ids they are recorded under."""

    def __init__(self) -> None:
        self.seen: dict[str, Message] = {}
        self.taken = Taken({}, frozenset())
        self.matcher = HistoryMatcher()
        self.changing = threading.Lock()

    def by_id(self, messages: Sequence[BaseMessage]) -> ById:
        names, older = self.taken
        return {names.get(one, one): message for one, message in _own(messages).items() if one not in older}


class Turns:
    """For any thread; two runs of one thread at a time are LangGraph's to refuse."""

    def __init__(self, sessions: Sessions, session_id: str | None) -> None:
        self._sessions = sessions
        self._session_id = session_id
        self._threads: WeakKeyDictionary[BlockingHotSwapSession, _Thread] = WeakKeyDictionary()
        self._changing = threading.Lock()

    def session(self, config: Mapping[str, Any]) -> BlockingHotSwapSession:
        """Of a run: its `stats` and `events` tell of its swaps."""
        thread_id = (config.get("configurable") or {}).get("thread_id")
        if self._session_id is None and not thread_id:
            raise InvalidInput('the run has no session: pass {"configurable": {"thread_id": …}}, or `session_id`')
        return self._sessions.of(self._session_id or str(thread_id))

    def given(
        self, session: BlockingHotSwapSession, said: Sequence[BaseMessage], shown: Sequence[BaseMessage]
    ) -> list[BaseMessage]:
        """What the model is given: the instructions, what stands for the past, the newest word for word, with memory
        and recall in their places. `said` is the thread and is recorded; `shown` is what the host would give of it."""
        try:
            self._add(session, said)
            return self._placed(session, shown)
        # Whatever goes wrong with memory, the agent goes on with its own messages.
        except Exception:
            log.exception("a turn went without memory")
            return list(shown)

    def answered(self, session: BlockingHotSwapSession, said: Sequence[BaseMessage]) -> None:
        """What the model has just said is recorded at once, not only before the next turn."""
        try:
            new = self._add(session, said)
            answer = next((one for one in reversed(new) if isinstance(one, AIMessage)), None)
            if answer is not None and answer.usage_metadata:
                session.report_usage(answer.usage_metadata["input_tokens"])
        except Exception:  # as above
            log.exception("an answer is recorded only with the next turn")

    def _add(self, session: BlockingHotSwapSession, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Those that are new. Instructions at the start are the host's own, given anew each time."""
        thread, given = self._thread(session), _own(messages)
        ids, said = list(given), list(given.values())

        @cache
        def message_at(at: int) -> Message:
            return msgspec.structs.replace(message_of_langchain(said[at]), id=ids[at])

        new = []
        with thread.changing:
            thread.taken = names, older = thread.matcher.take(session, ids, message_at)
            for at, own in enumerate(ids):
                name = names.get(own, own)
                if own not in older and name not in thread.seen:
                    thread.seen[name] = msgspec.structs.replace(message_at(at), id=name)
                    new.append(said[at])
        return new

    def _thread(self, session: BlockingHotSwapSession) -> _Thread:
        with self._changing:
            return self._threads.setdefault(session, _Thread())

    def _placed(self, session: BlockingHotSwapSession, shown: Sequence[BaseMessage]) -> list[BaseMessage]:
        thread = self._thread(session)
        seen, here = thread.seen, thread.by_id(shown)
        # What the host took out (`RemoveMessage`) is not shown to the model again; the log keeps it. What is too old to
        # be known again in a history that was made anew is none of that.
        compared: Container[str | None] = thread.matcher.ids() if thread.taken.older else seen
        sent = [one for one in session.turn_messages() if one.id not in compared or one.id in here]
        given = in_their_order([(one.id, _as_it_is(one, seen, here)) for one in sent], here)
        placed = with_unrecorded(given, here, seen)
        opening = [HumanMessage(OPENING)] if placed and isinstance(placed[0], AIMessage) else []
        return [*_instructions(shown), *opening, *placed]


def in_their_order(given: Sequence[Named], here: ById) -> list[Named]:
    """The host's own messages in the host's order: one that it put in between came later to us."""
    order = {message_id: at for at, message_id in enumerate(here)}
    own = iter(sorted((one for one in given if one[0] in order), key=lambda one: order[one[0]]))
    return [next(own) if one[0] in order else one for one in given]


def with_unrecorded(given: Sequence[Named], here: ById, seen: Mapping[str, Message]) -> list[BaseMessage]:
    """`given` with what the host shows beside the thread, each behind the message that it stood behind: what is meant
    for this one request is not part of the conversation. A tool's result whose call is gone goes with it."""
    places = {message_id for message_id, _ in given}
    swapped = [one for message_id, one in here.items() if message_id in seen and message_id not in places]
    gone = {call_id for one in swapped for call_id in _calls_of(one)}
    behind: dict[str | None, list[BaseMessage]] = {}
    newest = next((message_id for message_id in reversed(here) if message_id in seen), None)
    last, ending = None, []
    for message_id, message in here.items():
        if message_id in seen:
            last = message_id if message_id in places or message_id == newest else last
        elif isinstance(message, ToolMessage) and message.tool_call_id in gone:
            continue
        elif last == newest:  # at the end, whatever stands there now
            ending.append(message)
        else:
            behind.setdefault(last, []).append(message)
    placed = behind.pop(None, [])
    for message_id, message in given:
        placed += [message, *behind.get(message_id, [])]
    return placed + ending


def _calls_of(message: BaseMessage) -> list[str | None]:
    calls = (*message.tool_calls, *message.invalid_tool_calls) if isinstance(message, AIMessage) else ()
    return [call["id"] for call in calls]


def _own(messages: Sequence[BaseMessage]) -> dict[str, BaseMessage]:
    """By the ids that the host has for them."""
    said = messages[len(_instructions(messages)) :]
    return dict(zip(ids_in(said), said, strict=True))


def _instructions(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    said = next((at for at, one in enumerate(messages) if not isinstance(one, SystemMessage)), len(messages))
    return list(messages[:said])


def _as_it_is(sent: Message, seen: Mapping[str, Message], here: ById) -> BaseMessage:
    """The host's own object where nothing was changed in it: with all that only LangChain knows of it."""
    own, before = here.get(sent.id), seen.get(sent.id or "")
    if own is None or before is None:
        return langchain_of(sent)
    changed = langchain_of(sent)
    if sent.role != before.role or tool_calls(sent) != tool_calls(before) or type(changed) is not type(own):
        return changed
    if sent.content == before.content:
        return own
    added, now = _added(before.content, sent.content), message_of_langchain(own).content
    if added and now != before.content:  # the host changed what it says since, and shows it so
        changed = langchain_of(msgspec.structs.replace(sent, content=[*_blocks(now), *added]))
    return own.model_copy(update={"content": changed.content})


def _added(before: Content, sent: Content) -> list[Block]:
    """What was put behind it for this request. Nothing where it was changed otherwise."""
    if isinstance(before, str) and isinstance(sent, str):
        return _blocks(sent.removeprefix(before).strip()) if sent.startswith(before) else []
    first = _blocks(before)
    return _blocks(sent)[len(first) :] if _blocks(sent)[: len(first)] == first else []


def _blocks(content: Content) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
