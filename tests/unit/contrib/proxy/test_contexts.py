from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from offbook.contrib.proxy.chat_api import Item, made_item
from offbook.contrib.proxy.conversation import Known, chained
from offbook.contrib.proxy.swaps import Base, NotUsed, base_of, has_open_calls, shown_by_id, size_tokens, with_base
from offbook.model.content import render, strings
from offbook.model.types import Message

MEMORY = Message(role="assistant", content="What I know: parcels.")


def items_of(texts: list[str], *, tools_at: int | None = None) -> list[Item]:
    """A system's message, then users and assistants in turn; at one place a call and its result."""
    said = [
        {"role": "user" if number % 2 == 0 else "assistant", "content": text, "x_mine": number}
        for number, text in enumerate(texts)
    ]
    if tools_at is not None:
        call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        said[tools_at:tools_at] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ]
    made = [made_item({**one, "content": one["content"] or ""}) for one in said]
    placed = chained([item.fingerprint for item in made], "")
    return [
        made_item({"role": "system", "content": "Be brief."}),
        *(item._replace(place=place) for item, place in zip(made, placed, strict=True)),
    ]


def path_of(items: list[Item]) -> list[Known]:
    return [item.place for item in items if item.place is not None]


def handed(items: list[Item], verbatim: int) -> list[Message]:
    """As a provider hands it over: a memory, then the newest word for word, with their ids."""
    shown = [item for item in items if item.place is not None][-verbatim:] if verbatim else []
    given = [
        Message(
            role=item.message.role,
            content=item.message.content,
            id=item.place.id if item.place else None,
            tool_call_id=item.message.tool_call_id,
            meta=item.message.meta,
        )
        for item in shown
    ]
    return [MEMORY, *given]


@given(st.integers(2, 12), st.integers(1, 12), st.none() | st.integers(0, 12))
def test_the_base_and_what_follows_it_are_the_whole_without_a_gap(
    count: int, verbatim: int, tools_at: int | None
) -> None:
    items = items_of([f"Message {number}" for number in range(count)], tools_at=tools_at)
    path = path_of(items)
    verbatim = min(verbatim, len(path) - 1)
    assume(items[-verbatim].message.role != "tool")  # a provider hands over no result without its call
    base = base_of(handed(items, verbatim), path, shown_by_id(items), newest_id=path[-1].id, generation=1)
    whole = with_base(items, base)
    assert whole is not None
    assert whole[0] is items[0]
    after = [item for item in whole if item.place is not None]
    assert after == items[len(items) - len(after) :]  # the client's own, every field of them
    assert base.last_id == path[len(path) - len(after) - 1].id
    assert whole[1].message.content == MEMORY.content
    assert [item.message.role for item in after[:1]] != ["tool"]


def test_what_comes_later_stands_behind_the_same_base() -> None:
    items = items_of([f"Message {number}" for number in range(8)])
    base = base_of(handed(items[:7], 2), path_of(items[:7]), shown_by_id(items[:7]), newest_id=None, generation=1)
    before, after = with_base(items[:7], base), with_base(items, base)
    assert before is not None
    assert after is not None
    assert after[: len(before)] == before
    assert after[-2:] == items[-2:]


def test_what_the_provider_changed_stands_as_it_gave_it() -> None:
    """A secret that was taken out, or a text that was cut short, comes from the provider, and all before it."""
    items = items_of([f"Message {number}" for number in range(6)])
    memory, older, *newest = handed(items, 3)
    changed = Message(role=older.role, content="Message [redacted]", id=older.id)
    base = base_of([memory, changed, *newest], path_of(items), shown_by_id(items), newest_id=None, generation=1)
    assert base.last_id == older.id
    assert "Message [redacted]" in str(base.items)
    assert with_base(items, base) == [items[0], *base.items, *items[-2:]]


def test_what_was_taken_back_is_left_out() -> None:
    items = items_of([f"Message {number}" for number in range(6)])
    taken_back = Message(role="assistant", content="Never said.", id="proxy:elsewhere")
    answer = handed(items, 2)
    base = base_of(
        [answer[0], taken_back, *answer[1:]], path_of(items), shown_by_id(items), newest_id=None, generation=1
    )
    assert "Never said." not in str(with_base(items, base))


def test_what_does_not_reach_the_newest_is_not_used() -> None:
    items = items_of([f"Message {number}" for number in range(6)])
    path = path_of(items)
    with pytest.raises(NotUsed, match="newest"):
        base_of(handed(items[:5], 2), path, shown_by_id(items), newest_id=path[-1].id, generation=1)
    with pytest.raises(NotUsed, match="newest"):
        base_of([MEMORY], path, shown_by_id(items), newest_id=None, generation=1)
    with pytest.raises(NotUsed, match="nothing"):
        base_of(handed(items, 6)[1:], path, shown_by_id(items), newest_id=None, generation=1)


def test_a_base_fits_only_where_the_conversation_has_its_end() -> None:
    items = items_of([f"Message {number}" for number in range(8)])
    base = base_of(handed(items, 2), path_of(items), shown_by_id(items), newest_id=None, generation=1)
    parted = items_of([*[f"Message {number}" for number in range(4)], "Edited", "Another"])
    assert with_base(parted, base) is None
    assert with_base(items[-2:], base) is None
    assert with_base(items, None) is None


def test_a_result_without_its_call_is_not_used() -> None:
    items = items_of(["One", "Two", "Three"], tools_at=2)
    path = path_of(items)
    with pytest.raises(NotUsed, match="refuse"):
        base_of(handed(items, 2), path, shown_by_id(items), newest_id=path[-1].id, generation=1)


def test_what_the_model_said_in_one_go_is_not_parted() -> None:
    """A call belongs to the thoughts and words before it: an API refuses one without the other."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "I look."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
        {"role": "user", "content": "Two"},
    ]
    made = [made_item(one) for one in said]
    places = chained([item.fingerprint for item in made], "")
    items = [item._replace(place=place) for item, place in zip(made, places, strict=True)]
    reached = []
    for verbatim in (1, 2, 4, 5):  # a provider hands over no result without its call
        base = base_of(handed(items, verbatim), places, shown_by_id(items), newest_id=None, generation=1)
        reached.append([place.id for place in places].index(base.last_id))
    assert reached == [4, 3, 3, 0]  # behind the user's, or behind the result: never between two of the model's


def test_what_stays_leaves_its_thoughts_behind() -> None:
    """They are of an answer that a context stands for now."""
    thought = msgspec.Raw(b'{"type":"reasoning"}')
    made = [made_item({"role": role, "content": role}) for role in ("user", "system", "assistant", "user")]
    made[1] = made[1]._replace(before=(thought,))
    places = iter(chained([item.fingerprint for item in made if item.message.role != "system"], ""))
    items = [item if item.message.role == "system" else item._replace(place=next(places)) for item in made]
    assert items[2].place is not None
    whole = with_base(items, Base((made_item({"role": "assistant", "content": "SUMMARY"}),), items[2].place.id, 1))
    assert whole is not None
    assert [item.message.content for item in whole] == ["system", "SUMMARY", "user"]
    assert not any(item.before for item in whole)


def test_open_calls_and_sizes() -> None:
    items = items_of(["One", "Two"], tools_at=2)
    assert not has_open_calls(items)
    assert has_open_calls(items[:-1])
    large = made_item({"role": "user", "content": "A long letter. " * 100_000})
    sizes: dict[str, int] = {}
    assert 200_000 < size_tokens([large], sizes) < 600_000
    sizes[large.fingerprint] = 7
    assert size_tokens([large, large], sizes) == 14


def test_of_what_is_binary_only_the_beginning_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    longest: list[int] = []

    def looked(message: Message) -> str:
        longest.append(max(len(text) for _, text in strings(message.content)))
        return render(message)

    def shown(*parts: dict[str, Any]) -> int:
        return size_tokens([made_item({"role": "user", "content": [{"type": "text", "text": "Look:"}, *parts]})], {})

    def image(data: str) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}

    monkeypatch.setattr("offbook.contrib.proxy.swaps.render", looked)
    assert 0 <= shown(image("A" * 4_000_000)) - shown(image("A")) < 10
    assert max(longest) < 10_000
    letter = {"type": "file", "file": {"data": "A long letter. " * 100_000}}  # words, wherever they lie
    shown(letter)
    assert max(longest) == 1_500_000
