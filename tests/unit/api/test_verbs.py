"""The table of verbs, the requests and the handlers say the same."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from docs.generate.client_methods import BY_HAND

from offbook import AsyncClient, Client
from offbook.api.fields import OfAgent, OfSession
from offbook.api.verbs import VERBS, Verb
from offbook.model.types import Message, Scope
from tests.unit.small_memory import small_memory

NEEDED = "needed"
GIVEN_BY_A_SURFACE = {"by", "claim"}
NOT_AS_THE_HANDLER_HAS_IT = {
    ("onMessage", "messages"),  # one of two fields is needed
    ("forget", "reason"),  # it has to be given, though it may be empty
    ("unpin", "pinned"),  # that is what the verb says
}


async def test_a_handler_takes_what_its_request_has_with_the_same_defaults(tmp_path: Path) -> None:
    async with small_memory(tmp_path) as memory:
        taken = {verb.name: inspect.signature(getattr(memory, verb.handler)).parameters for verb in VERBS.values()}
    assert list(taken.pop("ping")) == ["by"]
    wrong = [(name, *_compared(VERBS[name], dict(parameters))) for name, parameters in taken.items()]
    assert [each for each in wrong if len(each) > 1] == []


def _compared(verb: Verb, taken: dict[str, inspect.Parameter]) -> Iterator[str]:
    """What a request with nothing but what is needed and the signature of its handler disagree on."""
    owner = "scope" if issubclass(verb.request, OfSession) else "agent_id"
    if next(iter(taken)) != owner or "by" not in taken:
        yield f"takes {[*taken]}: {owner} should be first, and `by` among the others"
    given = smallest(verb).arguments()
    expected = taken.keys() - GIVEN_BY_A_SURFACE - {owner} - ({"pinned"} if verb.name == "pin" else set())
    if given.keys() != expected:
        yield f"takes {sorted(expected)}, is given {sorted(given)}"
    for name in given.keys() & expected:
        default = NEEDED if taken[name].default is inspect.Parameter.empty else taken[name].default
        if given[name] != default and (verb.name, name) not in NOT_AS_THE_HANDLER_HAS_IT:
            yield f"{name} is {default!r}, in the request {given[name]!r}"


def smallest(verb: Verb) -> Any:
    needed = {field.name: NEEDED for field in msgspec.structs.fields(verb.request) if field.required}
    if verb.name == "onMessage":
        needed["message"] = Message(role="user", content="x")
    return verb.request(**needed)


@pytest.mark.parametrize("verb", VERBS.values(), ids=lambda verb: verb.name)
def test_both_clients_have_the_verb_as_a_method_that_takes_all_its_fields(verb: Verb) -> None:
    own, blocking = (inspect.signature(getattr(each, verb.method)) for each in (AsyncClient, Client))
    assert own == blocking
    if verb.name not in BY_HAND:
        fields = {field.encode_name for field in msgspec.structs.fields(verb.request)}
        assert {_camel(name) for name in own.parameters} - {"self"} == fields


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_who_is_meant_by_a_request() -> None:
    for verb in VERBS.values():
        request = smallest(verb)
        if issubclass(verb.request, OfSession):
            request = msgspec.structs.replace(request, session_id="agent:research:chat")
            assert request.owner("main") == Scope(agent_id="research", session_id="agent:research:chat")
        else:
            assert request.owner("main") == ("main" if issubclass(verb.request, OfAgent) else None)


def test_no_module_of_the_front_door_is_over_long() -> None:
    """What is generated may grow with the table: it has to be split before it is no longer read."""
    import offbook

    folder = Path(offbook.__path__[0])
    made = [*(folder / "api").glob("*.py"), *(folder / "client").glob("*.py")]
    assert [path.name for path in made if len(path.read_text(encoding="utf-8").splitlines()) > 400] == []
