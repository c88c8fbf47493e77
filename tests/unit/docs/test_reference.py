from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from docs.generate.client_methods import generated
from docs.generate.pages import DETAIL_MEANINGS, all_commands, all_errors, main, pages
from docs.generate.settings import places_read, settings_in_effect
from docs.generate.typescript import typescript

from offbook import Message, open_memory
from offbook.api.openapi import openapi_document
from offbook.api.verbs import VERBS
from offbook.cli.root import COMMANDS
from offbook.model.errors import OffbookError
from offbook.model.lesson import LessonDraft
from offbook.model.record import MarkRecord, MessageRecord, Record, SessionRecord
from offbook.model.settings import RESERVED_VARIABLES, Settings, catalogue
from offbook.model.settings.sections import TurnSettings
from offbook.model.summary import SourceSpan
from offbook.model.types import EMBEDDED, AuditDraft, now
from offbook.transfer.backup.archive import BackupDamaged
from tests.places import REPOSITORY

FOLDER = REPOSITORY / "docs" / "reference"
PLUGIN = REPOSITORY / "plugins" / "openclaw" / "src"
CLIENT = REPOSITORY / "src" / "offbook" / "client"
WEB = REPOSITORY / "web" / "src"


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


def test_the_pages_are_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    places = ["--folder", str(FOLDER), "--plugin", str(PLUGIN), "--client", str(CLIENT), "--web", str(WEB)]
    assert main(["--check", *places]) == 0, capsys.readouterr().err


def test_a_page_that_differs_or_is_missing_is_told_and_written_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plugin = tmp_path / "plugin"
    client = tmp_path / "client"
    places = [
        "--folder",
        str(tmp_path),
        "--plugin",
        str(plugin),
        "--client",
        str(client),
        "--web",
        str(tmp_path / "web"),
    ]
    assert main(places) == 0
    assert not any(each.exists() for each in (plugin, client)), "an installed provider has no sources beside it"
    plugin.mkdir()
    client.mkdir()
    (tmp_path / "verbs.md").write_text("something else")
    (tmp_path / "cli.md").unlink()
    capsys.readouterr()
    assert main(["--check", *places]) == 1
    told = capsys.readouterr().err
    made = [*pages(), "wire.ts", *generated()]
    assert [name for name in made if name in told] == ["verbs.md", "cli.md", "wire.ts", *generated()]
    assert main(places) == 0
    assert (plugin / "wire.ts").read_text(encoding="utf-8") == typescript(openapi_document())
    assert main(["--check", *places]) == 0


# ── nothing is left out ──


def test_every_setting_and_variable_is_told_once(made: dict[str, str]) -> None:
    rows = [line for line in made["settings.md"].splitlines() if line.startswith("| `")]
    for setting in catalogue():
        assert sum(line.startswith(f"| `{setting.name}` | `{setting.environment_name}` |") for line in rows) == 1
    assert all(any(line.startswith(f"| `{variable}` |") for line in rows) for variable in RESERVED_VARIABLES)


def test_every_verb_with_its_fields_and_its_answer_is_told(made: dict[str, str]) -> None:
    for verb, request in ((name, each.request) for name, each in VERBS.items()):
        section = _section(made["verbs.md"], f"## POST /v1/{verb}")
        assert all(f"| `{field.encode_name}` |" in section for field in msgspec.structs.fields(request))
        assert "\nAnswer: [" in section


def test_every_value_of_the_wire_has_its_table(made: dict[str, str]) -> None:
    requests = {verb.request.__name__ for verb in VERBS.values()}
    for name, schema in openapi_document()["components"]["schemas"].items():
        if name not in requests | {"Problem"}:
            section = _section(made["verbs.md"], f"### {name}")
            told = set(schema["properties"]) - {"type"}  # which tells the kinds of a record apart
            assert all(f"| `{field}` |" in section for field in told), name


def test_every_error_is_told(made: dict[str, str]) -> None:
    assert {OffbookError, BackupDamaged} < set(all_errors())
    for error in all_errors():
        row = next(
            line for line in made["errors.md"].splitlines() if line.startswith("|") and f"{error.__name__}`" in line
        )
        assert f"| `{error.slug}` | {error.status} |" in row
        assert re.search(rf"^[│├└─ ]*{error.__name__}$", made["errors.md"], re.MULTILINE)


def test_every_command_and_option_is_told(made: dict[str, str]) -> None:
    paths = [context.command_path for context in all_commands()]
    assert {f"offbook {name}" for name in COMMANDS} < set(paths)
    assert "offbook token create" in paths
    for context in all_commands():
        section = _section(made["cli.md"], f"## {context.command_path}")
        options = [name for each in context.command.params for name in each.opts if name.startswith("-")]
        assert all(re.search(rf"^\| `[^|]*{re.escape(name)}\b", section, re.MULTILINE) for name in options)
        assert "Example" in section or context.command_path == "offbook"


def test_the_openapi_file_is_the_document_a_provider_gives(made: dict[str, str]) -> None:
    def squeezed(value: Any) -> str:
        return re.sub(r"(\\n| )+", " ", msgspec.json.encode(value).decode())

    assert squeezed(msgspec.json.decode(made["openapi.json"])) == squeezed(openapi_document())


# ── what is told is so ──


def test_a_setting_is_in_effect_where_some_module_reads_it() -> None:
    effective = settings_in_effect()
    every = {setting.name for setting in catalogue()}
    assert {"server.port", "server.tlsKey", "store.readers", "redaction.enabled", "session.newSessionGap"} <= effective
    assert {"chunkTokens", "model", "injectionBudget.L1", "memory.compaction.threshold", "log.level"} <= effective
    assert {"contextBudget.midTurnCharLimit", "summarizer.attempts"} <= effective
    assert {"compaction.threshold", "compaction.taskAwareCompaction", "enabled", "storeOnly"} <= effective
    assert {"contextBudget.contextBudgetRatio", "contextBudget.olderTurnCharLimit", "turn.deadline"} <= effective
    of_attention = {name for name in every if name.startswith(("anchors.", "topicTracking."))}
    assert of_attention <= effective
    # As a default of another's, as what a host is told only, or nowhere at all.
    assert {"archive.retentionDays", "wiki.enabled", "lessons.enabled", "maintenance.interval"} <= effective
    idle = {"compaction.fallbackMessages", "memory.compaction.strategy"}
    assert idle <= every - effective
    assert effective <= every


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("settings.server.port", {("server", "port")}),
        ("self._settings.for_agent(agent_id).memory.compaction.threshold", {("memory", "compaction", "threshold")}),
        ("caps = self._settings.summarizer\ncaps.attempts", {("summarizer", "attempts")}),
        (
            "def f(budget: ContextBudget | None):\n    budget.mid_turn_char_limit",
            {("context_budget", "mid_turn_char_limit")},
        ),
        ("def f(self, given: Search):\n    self._given = given\n    self._given.limit", {("search", "limit")}),
        ("prices = settings.summarizer if x else None\nprices.threads", {("summarizer", "threads")}),
        ("compaction = other.compaction\ncompaction.threshold", set()),
        ("Compaction().fallback_messages", set()),
        (
            "def f(words: AnchorKeywords, kind: str):\n    getattr(words, kind)",
            {("anchors", "keywords", kind) for kind in ("identity", "contradiction", "tension")},
        ),
        ("def f(words: AnchorKeywords):\n    getattr(words, 'identity', ())", set()),
    ],
)
def test_what_is_read_is_found_in_the_source(source: str, places: set[tuple[str, ...]]) -> None:
    names = {tuple(setting.attributes) for setting in catalogue()}
    assert places_read(source) & names == places


@pytest.mark.usefixtures("one_model")
async def test_every_detail_an_audit_event_can_have_is_told(tmp_path: Path, made: dict[str, str]) -> None:
    said = Message(role="user", content="My cat is called Ada.", id="1")
    settings = msgspec.structs.replace(
        Settings(),
        store=msgspec.structs.replace(Settings().store, externalise_chars=99),
        prune_threshold=1,
        prune_keep=0,
        chunk_tokens=20,
        pruning_boundary_tokens=0,
        summarizer=msgspec.structs.replace(Settings().summarizer, order=["host", "extractive"]),
        turn=TurnSettings(deadline=timedelta()),  # so that something is missing
    )
    async with open_memory(tmp_path, settings=settings) as memory:
        chat = memory.scope("chat")
        await memory.session_start(chat, parent_session_id="another")
        await memory.on_message(chat, [said, Message(role="user", content="password: tulip-Harbour-42, " + "x" * 99)])
        await memory.on_message(chat, [said, Message(role="user", content="[OpenClaw heartbeat poll]")])
        await memory.on_message(chat, [msgspec.structs.replace(said, content="It rains here.")])
        await memory.pre_compaction(chat, [said])
        await memory.post_compaction(chat, "a summary")
        await memory.get_compressed_context(chat, 1_000)
        await memory.session_start(chat)
        await memory.session_end(chat, reason="reset")
        await memory.log(chat)
        await memory.missing(chat, ["1", "2"])
        await memory.status("main")
        await memory.on_message(chat, [Message(role="user", content=f"My name is {name}.") for name in ("Bob", "Rob")])
        await memory.on_message(memory.scope("chat", "other"), [said])
        for agent_id in ("main", "other"):
            await memory.cross(agent_id, enabled=True)
        await memory.recall(chat, "my cat", reach="all", at=now())
        await memory.recall(memory.scope("chat", "other"), "my name", reach="all")
        await memory.prepare_turn(chat, "What is my cat called?")
        await memory.prepare_turn(chat, "What is my cat called?", preview=True)
        await memory.enrich(chat, "my cat")
        for asked in (memory.topics, memory.anchors, memory.state):
            await asked("main", session_id="chat")
        await memory.config("main")
        await memory.sessions("main")
        await memory.activity("main")
        await memory.entries("main")
        await anext(memory.follow("main", after=None, by=EMBEDDED))
        draft = LessonDraft(
            kind="fact", text="The cat is Ada.", key="cat", confidence=0.9, first_seen=now(), last_seen=now(), times=1,
            places=await memory._store.places(chat, [1]),
        )  # fmt: skip
        learn = AuditDraft(verb="learn", actor="offbook")
        (lesson,) = await memory._store.keep_lessons("main", [draft], replaced={}, event=learn)
        await memory.lessons("main")
        await memory.judge_lesson("main", lesson.id, "edit", "The cat is Eve.")
        await memory.judge_lesson("main", lesson.id, "reject")
        await memory.pin("main", keyword="cat")
        await memory.pin("main", keyword="cat", pinned=False)
        await memory.unlink("main", "m100000001")
        await memory.reindex("main")
        (tmp_path / "wiki").write_text("in its way")
        await memory.maintain("main")
        assert (await memory.export("main")).records
        moved: list[Record] = [
            SessionRecord(session_id="moved", started_at=now()),
            MessageRecord(session_id="moved", seq=1, message=said, pinned=1),
            MarkRecord(session_id="moved", seq=1, kind="end", at=now()),
        ]
        await memory.import_records("main", moved, done=True)
        await memory.swap(chat, used_tokens=1, context_window=100)
        await memory.swap(chat, used_tokens=99, context_window=100, force=True)
        await memory.expand("main", span=SourceSpan(session_id="chat", first_seq=1, last_seq=2))
        await memory.replay(chat, now())
        await memory.claim_job("main")
        for number in range(2):  # the first is failed, the second completed
            talk = [Message(role="user", content=f"Please look at src/module_{number}.py again. " * 9)] * 9
            await memory.on_message(memory.scope(f"jobs {number}"), talk)
            while (job := (await memory.claim_job("main", wait_seconds=20)).job) is None:
                pass  # on a busy machine; the test's own timeout ends it
            await (memory.complete_job("main", job.id, "Look at it.") if number else memory.fail_job("main", job.id))
        await memory.compress("main", dry_run=True, again=True)
        async with asyncio.timeout(120):
            while not (page := await memory.summaries("main", level=1)).summaries:
                await asyncio.sleep(0.05)
        await memory.expand("main", summary_id=page.summaries[0].id)
        await memory.forget("main", matching="my name is Bob", dry_run=True)
        await memory.verify_forgotten(await memory.forget("main", matching="my name is Bob", reason="test"))
        await memory.forget_receipts("main")
        events = (await memory.audit("main")).events
        async with asyncio.timeout(120):
            while not {"offload", "compress"} <= {event.verb for event in events if event.actor == "offbook"}:
                await asyncio.sleep(0.05)
                events = (await memory.audit("main", limit=1_000)).events
    assert {event.verb for event in events} == {*VERBS, "supersede", "offload", "learn"} - {"ping"}
    told = {name for event in events for name in event.details}
    # The first comes with what the background finds, or too late for us; the others where something is damaged or full.
    rare = {"corrected", "missingParts", "lostMessages", "lostEvents", "events", "standIns", "emptied", "kept"}
    assert told | rare | {"heldSince", "reads", "written"} == set(DETAIL_MEANINGS)
    assert all(f"| `{name}` | {meaning} |" in made["audit.md"] for name, meaning in DETAIL_MEANINGS.items())


# ── links ──


@pytest.mark.parametrize(
    "page",
    [*(path for path in REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))],
    ids=lambda page: str(page.relative_to(REPOSITORY)),
)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in _links(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name} links to {target}"
        assert found.is_relative_to(REPOSITORY), f"{page.name} links to {target}, outside the repository"
        if anchor:
            assert anchor in _anchors(found.read_text(encoding="utf-8")), f"{page.name} links to {target}"


def test_every_page_can_be_reached_from_the_index() -> None:
    index = REPOSITORY / "docs" / "index.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in _links(index.read_text(encoding="utf-8"))}
    assert {page for page in index.parent.rglob("*.md") if page != index} <= linked
    assert index.resolve() in {
        (REPOSITORY / link.partition("#")[0]).resolve()
        for link in _links((REPOSITORY / "README.md").read_text("utf-8"))
    }


def test_no_page_names_the_machine_it_was_written_on() -> None:
    for page in [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]:
        assert str(REPOSITORY) not in page.read_text(encoding="utf-8"), page


# ── reading Markdown ──


def _section(text: str, heading: str) -> str:
    """From a heading to the next one of its level or above."""
    level = heading.partition(" ")[0]
    _, found, rest = f"\n{text}".partition(f"\n{heading}\n")
    assert found, f"there is no heading {heading!r}"
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def _links(text: str) -> list[str]:
    """Relative links and pictures, outside code."""
    prose = re.sub(r"`[^`\n]*`", "", _without_blocks(text))
    found = re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r'(?:src|srcset|href)="([^"]+)"', prose)
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def _anchors(text: str) -> set[str]:
    """As the usual renderers make them of headings: small letters, hyphens for spaces, no punctuation."""
    anchors: list[str] = []
    for title in re.findall(r"^#{1,6} (.+)$", _without_blocks(text), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        before = sum(re.sub(r"-\d+$", "", known) == anchor for known in anchors)
        anchors.append(f"{anchor}-{before}" if before else anchor)
    return set(anchors)


def _without_blocks(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
