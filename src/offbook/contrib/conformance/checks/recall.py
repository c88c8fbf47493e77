"""Recall and pins: 0 and 1 for what they answer, 4 for whose memory it is, 6 for what they leave in the audit."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

from offbook.contrib.conformance.check import (
    audit_faults,
    check,
    expect,
    expect_no_faults,
    expect_that,
    said,
    unique_id,
    unique_word,
)
from offbook.contrib.conformance.provider import Provider, named
from offbook.model.errors import ProviderRefused
from offbook.model.types import Scope, Tier

TIERS = get_args(Tier)
FIELDS: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str) and bool(value),
    "agentId": lambda value: isinstance(value, str),
    "sessionId": lambda value: isinstance(value, str),
    "text": lambda value: isinstance(value, str),
    "ts": lambda value: isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None,
    "score": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "foundBy": lambda value: isinstance(value, list) and all(isinstance(each, str) for each in value),
    "span": lambda value: isinstance(value, dict) and {"firstSeq", "lastSeq"} <= value.keys(),
    "tier": lambda value: value in TIERS,
    "pinned": lambda value: isinstance(value, bool),
    "origin": lambda value: isinstance(value, str),
}
SCRIPTS = {
    "Latin": ("Das Boot heißt {name}.", "abcdefghijklmnopqrstuvwxyzäöüßéñ"),
    "Greek": ("Το σκάφος λέγεται {name}.", "αβγδεζηθικλμνξοπρστυφχψω"),
    "Cyrillic": ("Лодку зовут {name}.", "абвгдежзиклмнопрстуфхцчшэюя"),
    "Arabic": ("اسم القارب هو {name}.", "ابتثجحخدرزسشصضطعغفقكلمنهي"),
    "Hebrew": ("שם הסירה הוא {name}.", "אבגדהוזחטילמנסעפצקרשת"),
    "Devanagari": ("नाव का नाम {name} है।", "कखगघचछजझटठडढतथदधनपफबभमयरलवसह"),
    "Chinese": ("这条船叫{name}，很漂亮。", "龙凤麒麟鹤鹰鲸鲨虎豹熊狼松柏梅兰竹菊荷桂琴棋书画"),
    "Japanese": ("船の名前は{name}です。", "カキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモ"),
    "Korean": ("배 이름은 {name} 입니다.", "가나다라마바사아자차카타파하고노도로모보소오조초코토포호"),
}


# ── 0: the answer ──


@check(0, "recall", "onMessage")
async def an_entry_is_whole(provider: Provider) -> None:
    """Every entry of `recall` has the contract's fields, of their types, and says where in the log it stands."""
    scope = provider.new_session(provider.new_agent())
    word = unique_word()
    await provider.record(scope, said(f"The boat is called {word}."), said(f"{word} it is, then.", "assistant"))
    answer = await provider.ask_value("recall", dict[str, Any], _recalled(scope, word))
    took, degraded, entries = (answer.get(field) for field in ("tookMs", "degraded", "entries"))
    expect_that(isinstance(took, int | float) and took >= 0, "tookMs of 0 or more", took)
    expect_that(isinstance(degraded, list) and all(isinstance(each, str) for each in degraded), "degraded", degraded)
    expect_that(isinstance(entries, list) and len(entries) > 0, "entries", entries)
    faults = [
        f"entry {number}: {field} is {entry.get(field)!r}"
        for number, entry in enumerate(entries or ())
        for field, is_sound in FIELDS.items()
        if field not in entry or not is_sound(entry[field])
    ]
    expect_no_faults(faults)
    for entry in entries or ():
        expect("its agent and session", [scope.agent_id, scope.session_id], [entry["agentId"], entry["sessionId"]])
        span = entry["span"]
        expect_that(1 <= span["firstSeq"] <= span["lastSeq"] <= 2, "a span within the session, 1 to 2", span)
    ids = [entry["id"] for entry in entries or ()]
    expect_that(len(set(ids)) == len(ids), "every entry once", ids)


@check(0, "recall", "onMessage")
async def the_best_come_first_and_no_more_than_asked_for(provider: Provider) -> None:
    """`recall` gives at most `limit` entries, those with the highest scores, best first."""
    scope = provider.new_session(provider.new_agent())
    common, rare = unique_word(), unique_word()
    await provider.record(scope, *(said(f"Number {number} is about {common}.") for number in range(9)))
    await provider.record_one(scope, said(f"And this is about {common} and {rare}."))
    for limit in (1, 3, 100):
        entries = await provider.recall(scope, f"{common} {rare}", limit=limit)
        expect_that(0 < len(entries) <= limit, f"1 to {limit} entries", len(entries))
        scores = [entry.score for entry in entries]
        expect_that(scores == sorted(scores, reverse=True), "scores that fall", scores)
        expect_that(rare in entries[0].text, f"first what holds both words ({rare})", entries[0].text)


@check(0, "recall", "onMessage")
async def a_deep_recall_only_orders_anew(provider: Provider) -> None:
    """`recall` with `depth` deep finds what a normal one does, best first, whether or not a model reads it again."""
    scope = provider.new_session(provider.new_agent())
    word = unique_word()
    await provider.record(scope, *(said(f"Number {number} is about {word}.") for number in range(5)))
    normal = {entry.id for entry in await provider.recall(scope, word, limit=100)}
    entries = await provider.recall(scope, word, limit=100, depth="deep")
    expect("the entries of a normal recall", normal, {entry.id for entry in entries})
    scores = [entry.score for entry in entries]
    expect_that(scores == sorted(scores, reverse=True), "scores that fall", scores)


@check(0, "recall", "onMessage")
async def a_recall_keeps_to_its_scope(provider: Provider) -> None:
    """`scope: session` finds what was said in that session only; `agent`, the default, all sessions of the agent."""
    here = provider.new_session(provider.new_agent())
    there = provider.new_session(here.agent_id)
    word = unique_word()
    # Not alike: a provider may show one of two that say the same.
    await provider.record_one(here, said(f"The ferry to the island is called {word}."))
    await provider.record_one(there, said(f"My niece thinks of {word} whenever she bakes bread."))
    faults = []
    for scope in (here, there):
        own = {entry.session_id for entry in await provider.recall(scope, word, scope="session")}
        faults += [] if own == {scope.session_id} else [f"scope session: came {sorted(own)}"]
        for fields in ({}, {"scope": "agent"}, {"scope": "all"}):
            found = {entry.session_id for entry in await provider.recall(scope, word, **fields)}
            missing = {here.session_id, there.session_id} - found
            faults += [f"{fields or 'no scope'}: nothing of {session}" for session in sorted(missing)]
    unknown = await provider.recall(provider.new_session(here.agent_id), word, scope="session")
    faults += [f"a session nobody knows: came {len(unknown)} entries"] if unknown else []
    expect_no_faults(faults)


@check(0, "recall", "onMessage")
async def a_recall_as_of_then_knows_nothing_later(provider: Provider) -> None:
    """`at` recalls as it was known then: nothing that was said after it."""
    scope = provider.new_session(provider.new_agent())
    word = unique_word()
    await provider.record(
        scope,
        said(f"In spring the ferry was called {word}.", ts="2024-04-01T12:00:00Z"),
        said(f"My niece wrote {word} on her cake in autumn.", ts="2024-10-01T12:00:00Z"),
    )
    for at, expected in (
        ("2024-01-01T00:00:00Z", []),
        ("2024-06-01T00:00:00+02:00", ["spring"]),
        ("2024-12-01T00:00:00Z", ["autumn", "spring"]),
    ):
        texts = [entry.text for entry in await provider.recall(scope, word, at=at)]
        seasons = sorted(season for season in ("spring", "autumn") if any(season in text for text in texts))
        expect(f"what was known at {at}", expected, seasons)


@check(0, "pin", "unpin", "recall", "onMessage")
async def a_pin_holds_until_it_is_taken_off(provider: Provider) -> None:
    """`pin` marks entries by id, keyword or session, `unpin` unmarks them; both say what they changed."""
    scope = provider.new_session(provider.new_agent())
    word = unique_word()
    await provider.record_one(scope, said(f"The spare key is with {word}."))
    (entry,) = await provider.recall(scope, word)
    expect("pinned before", False, entry.pinned)
    agent = {"agentId": scope.agent_id}
    ways: list[dict[str, Any]] = [{"entryIds": [entry.id]}, {"keyword": word}, {"sessionId": scope.session_id}]
    for meant in ways:
        for verb, is_pinned in (("pin", True), ("unpin", False)):
            first = await provider.ask_value(verb, dict[str, Any], agent | meant)
            expect(f"{verb} {meant}", [1, [entry.id]], [first.get("changed"), first.get("entryIds")])
            again = await provider.ask_value(verb, dict[str, Any], agent | meant)
            expect(f"{verb} {meant} again", [0, []], [again.get("changed"), again.get("entryIds")])
            (found,) = await provider.recall(scope, word)
            expect(f"pinned after {verb} {meant}", is_pinned, found.pinned)


# ── 1: at once ──


@check(1, "recall", "onMessage")
async def a_message_can_be_recalled_in_any_script(provider: Provider) -> None:
    """A message can be recalled right after its acknowledgement by a word of its text, whatever its script."""
    scope = provider.new_session(provider.new_agent())
    faults = []
    for script, (sentence, letters) in SCRIPTS.items():
        name = "".join(secrets.choice(letters) for _ in range(6))
        await provider.record_one(scope, said(sentence.format(name=name)))
        texts = [entry.text for entry in await provider.recall(scope, name)]
        faults += [] if any(name in text for text in texts) else [f"{script}: {name} is not in {texts}"]
    expect_no_faults(faults)


# ── 4: whose ──


@check(4, "recall", "onMessage")
async def recall_never_reaches_another_agent(provider: Provider) -> None:
    """Two agents with the same session key, words and message ids recall nothing of each other, whatever the scope."""
    ours, theirs, word = await _both_say_it(provider)
    faults = []
    for own, other in ((ours, theirs), (theirs, ours)):
        for scope in ("session", "agent", "all"):
            found = await provider.recall(own, f"What does {word} mean?", scope=scope, limit=20)
            faults += [] if found else [f"scope {scope}: nothing of its own"]
            owners = {entry.agent_id for entry in found} - {own.agent_id}
            faults += [f"scope {scope}: came entries of {sorted(owners)}"] if owners else []
            leaks = [entry.text for entry in found if f"I am {other.agent_id}" in entry.text]
            faults += [f"scope {scope}: came what the other said: {leaks}"] if leaks else []
    expect_no_faults(faults)


@check(4, "pin", "unpin", "recall", "onMessage")
async def a_pin_never_reaches_another_agent(provider: Provider) -> None:
    """The ids, words and sessions of another agent's entries pin and unpin nothing of it."""
    ours, theirs, word = await _both_say_it(provider)
    (their_entry,) = await provider.recall(theirs, word)
    ways: list[dict[str, Any]] = [{"entryIds": [their_entry.id]}, {"keyword": word}, {"sessionId": ours.session_id}]
    faults = []
    for is_pinned in (False, True):
        if is_pinned:
            await provider.ask("pin", {"agentId": theirs.agent_id, "entryIds": [their_entry.id]})
        for meant in ways:
            for verb in ("pin", "unpin"):
                changed = await _changed(provider, verb, {"agentId": ours.agent_id, **meant})
                faults += [f"{verb} {meant} changed the other's"] if their_entry.id in changed else []
        (found,) = await provider.recall(theirs, word)
        faults += [] if found.pinned == is_pinned else [f"the other's entry was pinned: {is_pinned}, is {found.pinned}"]
    expect_no_faults(faults)


# ── 6: the audit ──


@check(6, "audit", "recall", "pin", "unpin", "onMessage")
async def recall_and_pins_leave_one_event_each(provider: Provider) -> None:
    """`recall`, `pin` and `unpin` leave one event each, whether they found or changed anything or not."""
    scope = provider.new_session(provider.new_agent())
    word = unique_word()
    await provider.record_one(scope, said(f"The boat is called {word}."))
    agent = {"agentId": scope.agent_id}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("recall", _recalled(scope, word)),
        ("recall", _recalled(scope, unique_word())),
        ("pin", {**agent, "keyword": word}),
        ("pin", {**agent, "keyword": word}),
        ("unpin", {**agent, "sessionId": scope.session_id}),
        ("unpin", {**agent, "entryIds": []}),
    ]
    expect_no_faults(await audit_faults(provider, scope.agent_id, asked))
    expect("verified", True, (await provider.audit(scope.agent_id)).verified)


@check(6, "audit", "unlink", "recall", "onMessage")
async def an_unlink_without_a_link_changes_nothing_and_leaves_one_event(provider: Provider) -> None:
    """`unlink` says how many links it took back: of an entry that nothing replaced none, which leaves one event."""
    scope = provider.new_session(provider.new_agent())
    word = unique_word()
    await provider.record_one(scope, said(f"The boat is called {word}."))
    (entry,) = await provider.recall(scope, word)
    unlink = {"agentId": scope.agent_id, "entryId": entry.id}
    for fields in (unlink, {**unlink, "byId": entry.id}):
        answer = await provider.ask_value("unlink", dict[str, Any], fields)
        expect(f"unlink {fields}", 0, answer.get("changed"))
        expect_no_faults(await audit_faults(provider, scope.agent_id, [("unlink", fields)]))
    (still,) = await provider.recall(scope, word)
    expect("the entry after it", [entry.id, entry.text], [still.id, still.text])


async def _both_say_it(provider: Provider) -> tuple[Scope, Scope, str]:
    """Two agents with one session key, and a word that both of them say."""
    ours = provider.new_session(provider.new_agent())
    theirs = Scope(agent_id=provider.new_agent(), session_id=ours.session_id)
    word, message_id = unique_word(), unique_id()
    for scope in (ours, theirs):
        await provider.record_one(scope, said(f"I am {scope.agent_id} and I know {word}.", id=message_id))
    return ours, theirs, word


async def _changed(provider: Provider, verb: str, fields: dict[str, Any]) -> list[str]:
    """A provider may refuse the id of what is not the agent's, or say that nothing changed."""
    try:
        answer = await provider.ask_value(verb, dict[str, Any], fields)
    except ProviderRefused:
        return []
    return [str(each) for each in answer["entryIds"]]


def _recalled(scope: Scope, query: str) -> dict[str, Any]:
    return {**named(scope), "query": query}
