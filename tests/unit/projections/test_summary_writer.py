from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from offbook.context.summary_prompts import Remembered, chunk_prompt
from offbook.log.sqlite.store import SqliteStore
from offbook.model.errors import ModelUnavailable, StoreError, StoreFull
from offbook.model.settings import Settings
from offbook.model.settings.sections import Summarizer as SummarizerSettings
from offbook.model.summary import Completion, Usage
from offbook.model.types import Message
from offbook.models.endpoint import Answer, Refused
from offbook.models.protocols import Prompt, Written
from offbook.models.summarizers.available import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Breaker, open_summarizer
from offbook.models.summarizers.host import HostSummarizer
from offbook.projections import paid_answers
from offbook.projections.summary_writer import BrokenOff, Writer

GOOD = "I moved the release to 14 March with Dana; OPS-412 is done and the build on host-7 is still open."
BAD = "I'm sorry, but I can't help with that."
DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
USED = Usage(input_tokens=1_000, cached_tokens=900, output_tokens=50, dollars=0.25)


class Model:
    """A `Summarizer` of a few lines: says what it was told to, in order, then the last again."""

    def __init__(self, name: str, *says: str | Exception, context_tokens: int = 128_000, price: float = 0.0) -> None:
        self.name = name
        self.fingerprint = f"{name}:1"
        self.context_tokens = context_tokens
        self.price = price
        self.says = list(says) or [GOOD]
        self.prompts: list[Prompt] = []
        self.is_closed = threading.Event()
        self.before_each: Callable[[], object] = lambda: None

    def dollars_for(self, usage: Usage) -> float:
        return self.price

    def write(self, prompt: Prompt) -> Written:
        self.prompts.append(prompt)
        self.before_each()
        said = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(said, Exception):
            raise said
        return Written(text=said, usage=USED)

    def close(self) -> None:
        self.is_closed.set()


class World:
    """A writer over a real store, with a clock that stands still."""

    def __init__(self, store: SqliteStore, folder: Path, *models: Model, **fields: object) -> None:
        self.models = {model.name: model for model in models}
        self.now = DAY
        self.seconds = 0.0
        self.opened: list[str] = []
        self.host = HostSummarizer(timeout_seconds=5)
        order = tuple(fields.pop("order", [*self.models, "extractive"]))  # type: ignore[call-overload]
        settings = msgspec.structs.replace(Settings(), summarizer=SummarizerSettings(order=order, **fields))  # type: ignore[arg-type]
        self.writer = Writer(
            store,
            settings,
            models=folder,
            host=self.host,
            clock=lambda: self.now,
            monotonic=lambda: self.seconds,
            opening=self.open,
        )

    def open(self, spec: str, settings: Settings, agent_id: str, *, models: Path, host: HostSummarizer) -> object:
        self.opened.append(spec)
        if spec in self.models:
            return self.models[spec]
        return open_summarizer(spec, settings, agent_id, models=models, host=host)

    async def write(
        self, about: str = "the release", agent_id: str = "main", remembering: str | None = None
    ) -> tuple[Written, str, str] | None:
        return await self.writer.write(
            agent_id,
            asking(about, agent_id, remembering),
            source_chars=20_000,
            identifiers=["OPS-412", "host-7", "14 March"],
        )


def asking(about: str, agent_id: str = "main", remembering: str | None = None) -> Callable[[int], Prompt]:
    said = [(1, Message(role="user", content=f"Let us talk about {about}."))]
    past = [] if remembering is None else [Remembered(id="L1-0001", level=1, text=remembering, tokens=5, order=1)]
    return lambda max_tokens: chunk_prompt(agent_id, past, said, target_tokens=100, identifiers=[])


class Disk:
    """Stands before the store's `add_completion`: takes nothing while there is a `fault`, or nothing `of` one answer."""

    def __init__(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fault: StoreError | None = None
        self.of: str | None = None
        self._add = store.add_completion
        monkeypatch.setattr(store, "add_completion", self.add_completion)

    async def add_completion(self, agent_id: str, completion: Completion, at: datetime) -> None:
        if self.fault is not None and self.of in (None, completion.text):
            raise self.fault
        await self._add(agent_id, completion, at)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "offbook.db")
    yield opened
    await opened.close()


@pytest.fixture
def world(store: SqliteStore, tmp_path: Path) -> Callable[..., World]:
    return lambda *models, **fields: World(store, tmp_path, *models, **fields)


@pytest.fixture
def disk(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(store, monkeypatch)


MakeWorld = Callable[..., World]


async def test_the_first_in_line_writes(world: MakeWorld, store: SqliteStore) -> None:
    first, second = Model("first"), Model("second")
    made = world(first, second)
    written = await made.write()
    assert written is not None
    text, name, fingerprint = written
    assert (text.text, text.usage, name) == (GOOD, USED, "first")
    kept = await store.completion("main", fingerprint)
    assert kept is not None
    assert (kept.text, kept.summarizer) == (GOOD, "first")
    assert not second.prompts
    assert made.writer.troubles() == {}


async def test_the_same_input_is_paid_for_once_also_by_the_next_process(world: MakeWorld, store: SqliteStore) -> None:
    model = Model("first")
    made = world(model)
    first = await made.write()
    assert await made.write() == first
    assert await world(model).write() == first
    assert len(model.prompts) == 1
    [spent] = await store.spending(DAY.date())
    assert (spent.calls, spent.usage.dollars) == (1, 0.25)
    await made.write("something else")
    await made.write(agent_id="other")
    assert len(model.prompts) == 3


async def test_the_same_stretch_is_paid_for_once_whatever_is_remembered_by_then(world: MakeWorld) -> None:
    """After a stop another session may have been first, and the memories shown are others."""
    model, better = Model("first"), Model("better")
    first = await world(model).write(remembering="I met Dana.")
    assert await world(model).write(remembering="I met Robin.") == first
    assert await world(model).write() == first
    assert len(model.prompts) == 1
    written = await world(better, model).write(remembering="I met Dana.")
    assert written is not None
    assert written[1] == "better", "another summarizer is asked"
    assert len(better.prompts) == 1


async def test_an_answer_is_kept_before_it_is_judged(world: MakeWorld, store: SqliteStore) -> None:
    refusing, second = Model("first", BAD), Model("second")
    made = world(refusing, second)
    for _ in range(2):
        written = await made.write()
        assert written is not None
        assert written[1] == "second"
    assert len(refusing.prompts) == 1
    assert {spent.summarizer for spent in await store.spending(DAY.date())} == {"first", "second"}
    trouble = made.writer.troubles()["first"]
    assert trouble == "what first wrote was not taken: it loses 3 of 3 identifiers that it was to keep; it is a refusal"


async def test_where_nobody_can_the_extractive_one_does(world: MakeWorld) -> None:
    made = world(Model("first", ModelUnavailable("it is down", retryable=True)), Model("second", ""))
    assert await made.write() is None
    assert made.writer.troubles()["first"] == "it is down"
    assert "it is empty" in made.writer.troubles()["second"]
    assert await world(order=["extractive"]).write() is None


async def test_nobody_after_the_extractive_one_is_asked(world: MakeWorld) -> None:
    model = Model("first")
    assert await world(model, order=["extractive", "first"]).write() is None
    assert not model.prompts


async def test_one_that_recovers_is_used_again(world: MakeWorld) -> None:
    model = Model("first", ModelUnavailable("it is down"), ModelUnavailable("it is down"), GOOD)
    made = world(model)
    assert await made.write() is None
    assert await made.write() is None
    assert await made.write() is not None
    assert made.writer.troubles() == {}


# ── a store that takes nothing ──


async def test_what_could_not_be_stored_is_not_paid_for_again(world: MakeWorld, store: SqliteStore, disk: Disk) -> None:
    model = Model("first")
    made = world(model)
    disk.fault = StoreFull("the disk is full")
    for _ in range(4):
        with pytest.raises(StoreFull):
            await made.write()
    assert len(model.prompts) == 1
    disk.fault, made.now = None, DAY + timedelta(days=1)
    written = await made.write()
    assert written is not None
    assert (written[0].text, written[0].usage, written[1]) == (GOOD, USED, "first")
    assert await made.write() == written
    assert len(model.prompts) == 1
    [spent] = await store.spending(DAY.date())
    assert (spent.calls, spent.usage) == (1, USED), "on the day it was asked for"
    assert not await store.spending(made.now.date())


async def test_on_a_full_disk_nobody_is_asked_for_more(world: MakeWorld, store: SqliteStore, disk: Disk) -> None:
    model = Model("first")
    made = world(model)
    disk.fault = StoreFull("the disk is full")
    for about in "abc":
        with pytest.raises(StoreFull):
            await made.write(about)
    assert len(model.prompts) == 1
    disk.fault = None
    assert await made.write("b") is not None
    [spent] = await store.spending(DAY.date())
    assert (spent.calls, len(model.prompts)) == (2, 2), "the answer to a is stored before b is asked for"


async def test_an_answer_that_cannot_be_stored_keeps_nobody_else_waiting(world: MakeWorld, disk: Disk) -> None:
    model = Model("first", f"{GOOD} Or so.", GOOD)
    made = world(model)
    disk.fault, disk.of = StoreError("it could not be read again"), f"{GOOD} Or so."
    for _ in range(3):
        with pytest.raises(StoreError):
            await made.write("a")
        assert await made.write("b") is not None
    assert len(model.prompts) == 2


async def test_what_is_not_stored_yet_counts_against_the_caps(world: MakeWorld, disk: Disk) -> None:
    model = Model("first", price=0.3)
    made = world(model, max_dollars_per_day=1.0)
    disk.fault = StoreError("a write failed")
    for number in range(3):
        with pytest.raises(StoreError):
            await made.write(f"{number}", agent_id=f"agent-{number}")
    assert await made.write("more") is None
    assert len(model.prompts) == 3
    assert "has cost $0.75 of its $1.00 today" in made.writer.troubles()["first"]
    made.now += timedelta(days=1)
    with pytest.raises(StoreError):
        await made.write("more")
    assert len(model.prompts) == 4, "what was used yesterday is yesterday's"


async def test_what_is_held_has_an_end(world: MakeWorld, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid_answers, "MOST_UNSTORED", 2)
    model = Model("first")
    made = world(model)
    disk.fault = StoreError("a write failed")
    for about in "abcda":
        with pytest.raises(StoreError):
            await made.write(about)
    assert len(model.prompts) == 2
    disk.fault = None
    for about in "abcd":
        assert await made.write(about) is not None
    assert len(model.prompts) == 4


# ── pauses ──


async def test_three_failures_make_a_pause_that_doubles(world: MakeWorld) -> None:
    model = Model("first", ModelUnavailable("it is down"))
    made = world(model)
    for _ in range(5):
        await made.write()
    assert len(model.prompts) == 3
    assert made.writer.troubles() == {"first": "it is down (asked again in 60 seconds)"}
    made.seconds += FIRST_PAUSE_SECONDS
    for _ in range(3):
        await made.write()
    assert len(model.prompts) == 4, "one trial"
    assert "asked again in 120 seconds" in made.writer.troubles()["first"]
    model.says = [GOOD]
    made.seconds += 119
    assert await made.write() is None
    made.seconds += 1
    assert await made.write() is not None
    assert made.writer.troubles() == {}


async def test_what_is_made_of_one_agents_talk_is_nobody_elses_business(world: MakeWorld) -> None:
    model = Model("first", BAD)
    made = world(model)
    for number in range(5):
        assert await made.write(f"{number}", "sulky") is None
    assert len(model.prompts) == 3
    assert "refusal (asked again in 60 seconds)" in made.writer.troubles("sulky")["first"]
    assert made.writer.troubles("main") == {}
    model.says = [GOOD]
    assert await made.write("a") is not None
    assert await made.write("b", "sulky") is None, "another's luck is not its own"
    assert made.writer.troubles() == made.writer.troubles("sulky") != {}
    made.seconds += FIRST_PAUSE_SECONDS
    assert await made.write("b", "sulky") is not None
    assert made.writer.troubles() == {}


async def test_who_cannot_be_reached_is_left_alone_by_all(world: MakeWorld) -> None:
    model = Model("first", ModelUnavailable("it is down", retryable=True))
    made = world(model)
    for agent_id in ("main", "other", "third", "fourth"):
        assert await made.write(agent_id=agent_id) is None
    assert len(model.prompts) == 3
    for agent_id in ("main", "fourth", "fifth"):
        assert "it is down (asked again" in made.writer.troubles(agent_id)["first"]
    made.seconds += FIRST_PAUSE_SECONDS
    model.says = [BAD, GOOD]
    assert await made.write() is None
    assert made.writer.troubles("other") == {}, "it answers again, whatever it says"
    assert await made.write(agent_id="other") is not None


@pytest.mark.parametrize(("status", "is_shared"), [(400, False), (413, False), (404, True), (500, True)])
async def test_a_prompt_that_a_server_does_not_take_is_its_agents(
    status: int, is_shared: bool, world: MakeWorld
) -> None:
    error = ModelUnavailable(f"it answered {status}")
    error.__cause__ = Refused(Answer(status, b"the combination is 7-1-9"))
    model = Model("first", error, error, error, GOOD)
    made = world(model)
    for _ in range(3):
        assert await made.write() is None
    assert "asked again" in made.writer.troubles("main")["first"]
    assert ("first" in made.writer.troubles("other")) == is_shared
    assert (await made.write(agent_id="other") is None) == is_shared


def test_what_is_not_cached_for_less_is_not_expected_for_nothing(store: SqliteStore, tmp_path: Path) -> None:
    made = World(store, tmp_path, order=["openai:m", "extractive"], dollars_per_million_input=2.0)
    usage = made.writer.expected("main", 10)
    assert usage.cached_tokens
    assert usage.dollars == pytest.approx(usage.input_tokens * 2 / 1e6)
    made = World(store, tmp_path, order=["local", "extractive"], dollars_per_million_input=2.0)
    assert made.writer.expected("main", 10).dollars == 0


def test_a_pause_has_an_end() -> None:
    breaker = Breaker()
    pauses = []
    for _ in range(12):
        breaker = breaker.after_failure(0.0)
        pauses.append(breaker.seconds_left(0.0))
    assert pauses == [0, 0, 60, 120, 240, 480, 960, 1_920, *[LONGEST_PAUSE_SECONDS] * 4]


async def test_one_that_cannot_be_opened_pauses_as_well(world: MakeWorld) -> None:
    made = world(order=["openai", "nonsense", "extractive"])
    for _ in range(5):
        assert await made.write() is None
    assert made.opened == ["openai", "nonsense"] * 3
    troubles = made.writer.troubles()
    assert "write openai:NAME" in troubles["openai"]
    assert "summarizer.order names 'nonsense'" in troubles["nonsense"]


# ── caps ──


async def test_the_tokens_of_a_day_have_an_end(world: MakeWorld) -> None:
    model, second = Model("first"), Model("second")
    made = world(model, second, max_tokens_per_day=1_400)
    names = [written[1] for about in "abcd" if (written := await made.write(about))]
    assert names == ["first", "second"]
    assert len(model.prompts) == 1
    assert "has used 1,050 of its 1,400 tokens today" in made.writer.troubles()["first"]
    made.now += timedelta(days=1)
    written = await made.write("e")
    assert written is not None
    assert written[1] == "first"


async def test_the_dollars_of_a_day_have_an_end_over_all_agents(world: MakeWorld) -> None:
    model = Model("first", price=0.3)
    made = world(model, max_dollars_per_day=1.0)
    for number in range(6):
        await made.write(f"{number}", agent_id=f"agent-{number}")
    assert len(model.prompts) == 3
    assert "has cost $0.75 of its $1.00 today" in made.writer.troubles()["first"]


async def test_a_model_whose_price_is_known_only_afterwards_has_an_end_too(world: MakeWorld) -> None:
    model = Model("first", price=0.0)
    made = world(model, max_dollars_per_day=0.4)
    for about in "abcd":
        await made.write(about)
    assert len(model.prompts) == 2
    spending = await made.writer.spending("main")
    assert spending is not None
    assert (spending.tokens, spending.dollars, spending.max_dollars) == (2_100, 0.5, 0.4)


async def test_a_cap_is_no_failure_and_what_is_known_costs_nothing(world: MakeWorld) -> None:
    model = Model("first", price=0.3)
    made = world(model, max_dollars_per_day=0.4)
    known = await made.write("a")
    for _ in range(5):
        assert await made.write("b") is None
    assert await made.write("a") == known
    assert "asked again" not in str(made.writer.troubles())


# ── what fits ──


async def test_a_model_that_reads_less_is_shown_less(world: MakeWorld) -> None:
    asked: list[int] = []
    model = Model("first", context_tokens=8_192)

    def make(max_tokens: int) -> Prompt:
        asked.append(max_tokens)
        return asking("it")(max_tokens)

    made = world(model)
    assert await made.writer.write("main", make, source_chars=20_000, identifiers=[]) is not None
    [max_tokens] = asked
    assert 5_000 < max_tokens < 6_000
    assert model.prompts[0].max_output_tokens == 150 + model.prompts[0].statements_tokens


async def test_a_prompt_that_is_too_long_is_not_sent(world: MakeWorld) -> None:
    small, large = Model("small", context_tokens=600), Model("large")
    made = world(small, large)
    said = "word " * 2_000
    written = await made.write(said)
    assert written is not None
    assert written[1] == "large"
    assert not small.prompts
    assert "small reads 600 tokens, too few for a prompt of about" in made.writer.troubles()["small"]
    assert "asked again" not in made.writer.troubles()["small"]


async def test_an_answer_gets_the_room_that_is_left(world: MakeWorld) -> None:
    model = Model("first", context_tokens=1_150)
    made = world(model)
    await made.write("word " * 120)
    [prompt] = model.prompts
    assert 200 <= prompt.max_output_tokens < 450


# ── the host ──


async def test_a_host_that_is_away_is_no_failure(world: MakeWorld) -> None:
    made = world(order=["host", "extractive"])
    for _ in range(5):
        assert await made.write() is None
    assert made.writer.troubles("main") == {"host": "no host asks for work of agent 'main'"}
    assert made.writer.troubles("other") == {}, "one agent's host is nobody else's business"
    made.host.claim("main")
    writing = asyncio.create_task(made.write())
    job = await asyncio.to_thread(made.host.claim, "main", 5.0)
    assert job is not None
    made.host.complete("main", job.id, GOOD, USED)
    written = await writing
    assert written is not None
    assert written[1] == "host"


# ── the end ──


async def test_one_call_at_a_time(world: MakeWorld) -> None:
    model = Model("first")
    at_once, most = 0, 0

    def count() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        threading.Event().wait(0.02)
        at_once -= 1

    model.before_each = count
    made = world(model)
    await asyncio.gather(*(made.write(f"{number}") for number in range(5)))
    assert (most, len(model.prompts)) == (1, 5)


async def test_closing_breaks_off_who_writes(world: MakeWorld) -> None:
    model = Model("first", ModelUnavailable("closed"))
    begun = threading.Event()
    model.before_each = lambda: (begun.set(), model.is_closed.wait(60))
    made = world(model, Model("second"))
    writing = asyncio.create_task(made.write())
    assert await asyncio.to_thread(begun.wait, 30)
    await made.writer.close()
    assert await asyncio.wait_for(writing, 120) is None
    assert not made.models["second"].prompts
    assert await made.write() is None
    await made.writer.close()


# ── giving way to a forget ──


async def test_a_call_under_way_is_broken_off_and_its_answer_dropped(store: SqliteStore, tmp_path: Path) -> None:
    begun, may_answer = threading.Event(), threading.Event()
    slow, quick = Model("slow"), Model("quick")
    slow.before_each = lambda: (begun.set(), may_answer.wait(120))
    world = World(store, tmp_path, slow, quick)
    writing_one = asyncio.create_task(world.write())
    assert await asyncio.to_thread(begun.wait, 120)
    with world.writer.giving_way("main"):
        with pytest.raises(BrokenOff):
            await writing_one
        with pytest.raises(BrokenOff):  # none is begun, either; who is not free is not asked
            await world.write("the build")
        other = await world.write("the build", agent_id="other")
        assert other is not None
        assert other[1] == "quick"
    may_answer.set()
    async with asyncio.timeout(120):
        while (again := await world.write("the release once more")) is None or again[1] != "slow":
            await asyncio.sleep(0.01)
    assert world.writer.troubles("main") == {}  # nothing was wrong with it


async def test_what_the_host_has_not_begun_is_withdrawn_when_it_is_to_be_forgotten(
    store: SqliteStore, tmp_path: Path
) -> None:
    world = World(store, tmp_path, order=("host", "extractive"))
    world.host.claim("main")  # a host is there
    writing_one = asyncio.create_task(world.write())
    async with asyncio.timeout(120):
        while (job := world.host.claim("main")) is None:
            await asyncio.sleep(0.01)
    with world.writer.giving_way("main"), pytest.raises(BrokenOff):
        await writing_one
    assert world.host.claim("main") is None
    assert not world.host.complete("main", job.id, GOOD)  # what came of it is not kept either


async def test_an_answer_that_could_not_be_stored_is_let_go_of_but_not_its_cost(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(store, monkeypatch)
    disk.fault = StoreFull("the disk is full")
    world = World(store, tmp_path, Model("first"))
    with pytest.raises(StoreFull):
        await world.write()
    with world.writer.giving_way("main"):
        pass
    disk.fault = None
    await world.write("the build")
    (spent,) = await store.spending(DAY.date())
    assert spent.usage.dollars == 2 * USED.dollars
    kept = [kept.text async for kept in store.kept_texts("main") if kept.table == "completions"]
    assert sum(GOOD in text for text in kept) == 1  # of the build
