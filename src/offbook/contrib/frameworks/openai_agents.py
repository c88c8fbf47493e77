"""A `Session` of the OpenAI Agents SDK that never overflows.

    async with AsyncClient(agent_id="main") as memory:
        session = OffbookSession("telegram:42", memory, context_window=200_000)
        config = RunConfig(call_model_input_filter=session.with_memory)
        result = await Runner.run(agent, "Where were we?", session=session, run_config=config)

Every item is recorded, whole. `get_items` gives them back as they were, until the window is nearly full: then it gives
summaries and the newest items in their place, by hot swap. Where the provider is away the session goes on with what it
holds; what was added is in the outbox.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from offbook.client.async_client import AsyncClient
from offbook.client.hot_swap import DEADLINE_SECONDS, HotSwapSession
from offbook.client.messages import QUOTED_RESULT, THOUGHT, is_framed, message_of
from offbook.client.placement import TurnKey, held, placed, turn_key_of
from offbook.client.slot import Slot
from offbook.client.swap_question import Outcome, Questions, SwapStats
from offbook.contrib.frameworks.history_matcher import missing
from offbook.model.content import CALL_TYPES, TEXT_TYPES, block_text, render
from offbook.model.errors import ProviderUnavailable, WrongShape
from offbook.model.receipt import FORGOTTEN_TEXT
from offbook.model.turn import PreparedTurn
from offbook.model.types import Block, Message

# ── Items of OpenAI's Responses API, as the Agents SDK keeps them, as messages of ours and back ──

MARK = "openaiAgents"
Item = dict[str, Any]

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_RESULT_ENDING = "_output"


def message_of_item(item: Mapping[str, Any]) -> Message:
    """Raises WrongShape where it cannot be written as JSON."""
    kind, role, content = item.get("type", "message"), item.get("role"), item.get("content")
    if kind == "message" and role in _ROLES and _is_content(content):
        beside = {name: value for name, value in item.items() if name not in ("role", "content")}
        mark = {"role": role, "beside": beside}
        return message_of({"role": _ROLES[role], "content": content, "meta": {MARK: mark}})
    fields: dict[str, Any] = {"role": "assistant", "content": [dict(item)], "meta": {MARK: {"type": kind}}}
    call_id = item.get("call_id")
    if isinstance(call_id, str) and str(kind).endswith(_RESULT_ENDING):
        fields |= {"role": "tool", "toolCallId": call_id}
    elif isinstance(call_id, str) and kind not in CALL_TYPES:  # one that only this API knows
        call = {"type": "function", "id": call_id, "name": item.get("name") or kind}
        fields["meta"]["tool_calls"] = [call]
    return message_of(fields)


def items_of(messages: Sequence[Message]) -> list[Item]:
    """What the API takes. Reasoning that is gone is left out, and with it the names of the items that came of it: the
    API refuses an item by its `id` whose reasoning it is not given."""
    return list(_items(messages))


def item_of(message: Message) -> Item | None:
    """None where nothing of the item is left to give: a thought that no other model may read."""
    mark = (message.meta or {}).get(MARK)
    if not isinstance(mark, dict):
        return _said(message)
    content = message.content
    if "role" in mark:
        role = mark["role"]
        given = content if isinstance(content, str) else [_of_role(block, role) for block in content]
        return {**mark.get("beside", {}), "role": role, "content": given}
    if isinstance(content, list) and len(content) == 1 and content[0].get("type", "message") == mark.get("type"):
        return content[0]
    return None if mark.get("type") == "reasoning" and content == THOUGHT else _said(message)


def _items(messages: Sequence[Message]) -> Iterator[Item]:
    has_reason = True  # whether what an assistant's item came of is there, as far as it is known
    for message in messages:
        is_ours = MARK not in (message.meta or {})
        item = item_of(message)
        if item is None or is_ours:
            has_reason = False
        elif message.role in ("user", "system") or item.get("type") == "reasoning":
            has_reason = True
        if item is not None:
            is_bare = message.role == "assistant" and not has_reason
            yield {name: value for name, value in item.items() if name != "id"} if is_bare else item


def _is_content(content: Any) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and all(isinstance(one, Mapping) for one in content))


def _of_role(block: Block, role: str) -> Block:
    """A text that took the place of something, or was added, in the dialect of its side."""
    if block.get("type") != "text" or block_text(block) is None:
        return block
    return {**block, "type": "output_text" if role == "assistant" else "input_text"}


def _said(message: Message) -> Item:
    role = "user" if message.role == "tool" else message.role
    content = message.content
    if isinstance(content, list) and all(block.get("type") in TEXT_TYPES for block in content):
        return {"role": role, "content": "\n".join(str(block.get("text", "")) for block in content)}
    return {"role": role, "content": content if isinstance(content, str) else render(message)}


try:
    from agents.items import TResponseInputItem
    from agents.memory import Session
    from agents.memory.session_settings import SessionSettings, resolve_session_limit
    from agents.run_config import CallModelData, ModelInputData
except ImportError as error:
    raise missing("the OpenAI Agents SDK", "openai-agents", error) from error

log = logging.getLogger("offbook.integrations")
WITHDRAWN = "The message before this one was taken back."
REST_SECONDS = 5.0  # after a turn that was not prepared in time


class OffbookSession(Session):
    """One conversation. For one event loop; `options` are those of `HotSwapSession`."""

    def __init__(
        self,
        session_id: str,
        memory: AsyncClient,
        *,
        context_window: int,
        session_settings: SessionSettings | None = None,
        deadline_seconds: float = DEADLINE_SECONDS,
        agent_id: str | None = None,
        **options: Any,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = session_settings or SessionSettings()
        self._memory = memory
        self._agent_id = agent_id
        self._options = {**options, "context_window": context_window, "deadline_seconds": deadline_seconds}
        self._questions = Questions(memory, session_id, agent_id, Slot)
        self._last_turn: tuple[TurnKey, PreparedTurn] | None = None
        self._rest_until = 0.0
        self._given_items: int | None = None  # what the run has that is going on, where all of it is the session's
        self._given_after = 0
        self._newest: Item = {}
        self._begin()

    def _begin(self) -> None:
        self._swap = HotSwapSession(self._memory, self.session_id, agent_id=self._agent_id, **self._options)
        self._is_started = False

    # ── what the SDK calls ──

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """What the model is to know of the conversation: all of it, or what stands for it since the last swap. With
        `limit` the newest of that."""
        items = items_of(await self._kept())
        most = resolve_session_limit(limit, self.session_settings)
        if most is None or len(items) <= most:  # else it is a part, or the SDK looks at what it has saved of a run
            self._given_items, self._given_after = len(items), self._changes()
            self._newest = items[-1] if items else {}
        return _as_given(items if most is None else items[max(0, len(items) - max(0, most)) :])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._ready()
        for item in items:
            self._swap.add(message_of_item(cast("Item", item)))
            self._newest = cast("Item", item)
        if self._given_items is not None:
            self._given_items += len(items)

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item back: it is not given any more, here or after a restart. The log keeps that it was
        said and taken back, and a summary made meanwhile may tell of it; `AsyncClient.forget` erases."""
        newest = next((one for one in reversed(await self._kept()) if MARK in (one.meta or {})), None)
        if newest is None:
            return None
        self._given_items = None
        self._swap.add(Message(role="system", content=WITHDRAWN, meta={MARK: {"withdrawn": newest.id}}))
        return _as_given([item_of(newest) or {}])[0]

    async def clear_session(self) -> None:
        """Forgets the conversation for good, with all that came of it. Raises ProviderUnavailable where nobody is there
        to do it: nothing is cleared then. To begin afresh and remember, take another `session_id`."""
        if not await self._memory.settle():
            raise ProviderUnavailable(
                "the session is not cleared: what was said last has not arrived; see `offbook status`, and try again"
            )
        await self._memory.forget(session_id=self.session_id, reason="clear_session", agent_id=self._agent_id)
        await self._swap.close()
        self._last_turn = self._given_items = None
        self._newest = {}
        self._begin()

    # ── what the host may call ──

    async def with_memory(self, data: CallModelData[Any]) -> ModelInputData:
        """For `RunConfig(call_model_input_filter=…)`: the input with what the agent should have in mind, memory first
        and recall at the end of the user's message; without, where the provider has no answer in time. A swap that is
        due in the middle of a run happens here, where the input is the session's and nobody else's."""
        given = data.model_data
        try:
            return await self._with_turn(given)
        except WrongShape as error:  # an item that is no JSON: the SDK's to send or to refuse
            log.warning("a turn went without memory: %s", error)
            return given

    def report_usage(self, input_tokens: int | None) -> None:
        """What the last prompt took (`result.raw_responses[-1].usage.input_tokens`): without it that is estimated, and
        instructions and tools are not counted."""
        self._swap.report_usage(input_tokens)

    @property
    def stats(self) -> SwapStats:
        return self._swap.stats

    async def close(self) -> None:
        """Stop asking. What was added is the client's to deliver."""
        await self._swap.close()

    # ── inside ──

    def _changes(self) -> int:
        stats = self._swap.stats
        return stats.swaps + stats.compactions

    async def _ready(self) -> None:
        if not self._is_started:
            self._is_started = True
            await self._swap.start()

    async def _kept(self) -> list[Message]:
        await self._ready()
        messages = await self._swap.messages()
        marks = [(message, (message.meta or {}).get(MARK) or {}) for message in messages]
        gone = {mark["withdrawn"] for _, mark in marks if "withdrawn" in mark}
        return [one for one, mark in marks if "withdrawn" not in mark and one.id not in gone and not _is_erased(one)]

    async def _with_turn(self, given: ModelInputData) -> ModelInputData:
        for _ in range(2):  # what comes with the word that something was forgotten may still have it
            current = await self._current(given)
            # Where it stands tells two messages of the same words apart.
            messages = [_numbered(message_of_item(cast("Item", item)), at) for at, item in enumerate(current.input)]
            asked = turn_key_of(messages, None, self._swap.stats.generation)
            turn = None if asked is None else await self._turn(asked)
            if turn is None:
                return current
            if not await self._swap.let_go(turn.forgets):
                shown = _as_given(items_of(placed(messages, turn)))
                return ModelInputData(input=shown, instructions=given.instructions)
            self._last_turn = None
        return await self._current(given)

    async def _current(self, given: ModelInputData) -> ModelInputData:
        count = self._given_items or 0
        # A streamed run has the user's message here before the session has it: that stays behind the session's items.
        items, beyond = given.input[:count], given.input[count:]
        if items and len(items) == count and _is_same(cast("Item", items[-1]), self._newest):
            kept = await self._kept()  # what is due is swapped here
            if self._changes() != self._given_after:
                return ModelInputData(input=[*_as_given(items_of(kept)), *beyond], instructions=given.instructions)
        return given

    async def _turn(self, asked: TurnKey) -> PreparedTurn | None:
        """Once for each message of the user's: were it another one after a tool's result, nothing would be cached."""
        if self._last_turn is not None and self._last_turn[0] == asked:
            return self._last_turn[1]
        if time.monotonic() < self._rest_until:
            return held(None, asked, self._last_turn)
        window, seconds = self._swap.context_window, float(self._options["deadline_seconds"])
        turn = await self._questions.turn(asked.prompt, self._swap.used_tokens, window, seconds)
        if isinstance(turn, Outcome):
            self._rest_until = time.monotonic() + REST_SECONDS
            return held(None, asked, self._last_turn)
        self._last_turn = (asked, held(turn, asked, self._last_turn) or turn)
        return self._last_turn[1]


def _is_same(item: Item, other: Item) -> bool:
    """By what it says: the SDK leaves out of a request what only it knows of an item, which may be its id. Where both
    have one that tells more: a thought, or a search of the provider's own, may say nothing."""
    said = ("role", "call_id", "content", "output", "summary", "encrypted_content")
    ids = {one["id"] for one in (item, other) if one.get("id")}
    return len(ids) < 2 and all(item.get(name) == other.get(name) for name in said)


def _numbered(message: Message, at: int) -> Message:
    return msgspec.structs.replace(message, id=str(at))


def _is_erased(message: Message) -> bool:
    """What `clear_session` left of an item."""
    text = render(message)
    is_memory = is_framed(text) and QUOTED_RESULT not in text
    return MARK not in (message.meta or {}) and FORGOTTEN_TEXT in text and not is_memory


def _as_given(items: Sequence[Item]) -> list[TResponseInputItem]:
    # A copy: the SDK changes items in place, and these are the session's own.
    return [cast("TResponseInputItem", msgspec.json.decode(msgspec.json.encode(item))) for item in items]
