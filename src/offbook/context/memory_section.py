"""The stable section: the page of what the agent knows, in whole sentences, the same until the next swap. Pure.

    who they are   what holds   what is going on   the story so far: [L3 …] [L2 …] [L1 …]   pinned

Small by default: what earns its place. What must not be lost has its share first; the story gets what is left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from math import floor
from typing import NamedTuple

from msgspec.structs import replace

from offbook.context import prompt_text
from offbook.context.cover import COARSEST, NAME_TOKENS, chosen
from offbook.context.prompt_text import is_person, named
from offbook.context.quotes import defused, quoted
from offbook.context.summary_drafts import EXTRACTIVE
from offbook.context.summary_lines import SummaryLines, cut
from offbook.context.time_text import day_of_heading, day_text, heading
from offbook.ingest.frames import frame
from offbook.model.content import render
from offbook.model.lesson import Lesson
from offbook.model.sentences import sentences
from offbook.model.settings import Settings
from offbook.model.statement import ReadSentence, StatementKind
from offbook.model.summary import PartKind, StateKind, Summary, SummaryDraft, TurnPart
from offbook.model.turn import SessionState, TurnMemory
from offbook.model.types import Message
from offbook.models.glossary import in_english
from offbook.models.sentence_kinds import read_sentences
from offbook.models.tokens import estimate_tokens
from offbook.search.words import is_latin, is_unspaced
from offbook.statements.lessons import QUOTED
from offbook.statements.reading import KEPT
from offbook.statements.state_text import HEADING as DOING
from offbook.statements.state_text import rendered

SWAPPED_SHARE = 0.1
"""Of the window, where the agent runs on a context of ours already: the two together must not bring the next swap
nearer."""
KEPT_SHARE = 0.45
"""Of the section, for what was learnt."""
STATE_SHARE = 0.15
"""Of the section, for each of what is going on and what is pinned."""
MOST_KEPT_TOKENS = 3_000
LEAP_DAY = date(2000, 1, 1)
"""For headings without a year, before one with."""
WHO, HOLDS, STORY = "Who they are:", "What holds:", "The story so far, oldest first:"
PINNED_CHARS, STATE_CHARS, LESSON_CHARS, BEFORE_CHARS = 500, 1_200, 400, 200
NAME_CHARS = 60
TELLS, AGENT_STATED, OWN = 0.5, 0.9, 0.8
"""How likely a sentence must tell what is or was so (of the agent, whose answers are mostly advice and lists, state
something at all: on 350 long answers 81 % of what is told did happen, 64 % at 0.5) and be in the speaker's own voice,
to be told in the story. What is wanted is told where it would be kept as a lesson, too (`KEPT`)."""
LEAST_WORDS, LEAST_UNSPACED = 4, 6
"""Of a sentence that is told, or letters where there are no spaces: "By 15 May." says nothing by itself."""
MOST_STORY_TOKENS = 4_000
SHARE_OF_ONE, SHARE_OF_MANY, TOLD_SHARE = 0.2, 0.55, 0.5
"""Of the story's room, for one summary, and one that merges others: of a longer one its best lines are told. And how
much of what one quotes is, about."""
HAPPENED: tuple[StatementKind, ...] = ("outcome", "decision")
INTRODUCTION = (
    "What I know from before, in their words, each with the day it was said; the newest is what holds. A name such as "
    "[L1-0003] or [lesson-0007] can be expanded to the exact messages."
)
GOES_ON: tuple[StateKind, ...] = ("open loop", "live handle")
_LEVELS = {3: "Long ago:", 2: "Earlier:", 1: "Lately:"}
THEMSELVES = frozenset(("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"))


class Known(NamedTuple):
    """What the section is made of."""

    summaries: Sequence[Summary]
    """The newest of each level that are not in the agent's context already."""
    states: Sequence[SessionState]
    """Of the newest sessions, the newest first; that of the session itself has its id."""
    pinned: Sequence[str]
    """What was said, as it is shown, oldest first."""
    lessons: Sequence[Lesson] = ()
    """Those that are sure enough, the first to be told first."""
    before: Mapping[str, str] = {}
    """By the id of a lesson, what held before it."""
    later: Mapping[str, str] = {}
    """By the id of a lesson, what was said later and may be about the same."""
    outdated: Mapping[str, str] = {}
    """Sentences that something was said about since, and what is left of each: the story is told without them."""
    passing: Sequence[Summary] = ()
    """Of conversations that they never came back to: what longer summaries quote of these is not told either."""


class MemorySection(NamedTuple):
    text: str
    tokens: int
    parts: list[TurnPart]


def memory_budget(settings: Settings, *, window: int, current_tokens: int, recall_budget: int, is_handed: bool) -> int:
    """Tokens that the section may take: a small share of the window, within the levels' budgets (C5) and the share that
    continuity may fill (D2) beside what is in use."""
    levels = settings.injection_budget
    most = floor(window * settings.context_budget.context_budget_ratio) - current_tokens - recall_budget
    if is_handed:
        most = min(most, floor(window * SWAPPED_SHARE))
    share = floor(window * settings.context_budget.memory_share)
    least = min(settings.token_budget.min_budget_tokens, share)
    return max(least, min(most, share, levels.l1 + levels.l2 + levels.l3))


def memory_section(known: Known, settings: Settings, *, session_id: str, budget: int, key: bytes) -> MemorySection:
    learnt, told = _lessons_part(known, min(MOST_KEPT_TOKENS, int(budget * KEPT_SHARE)))
    of_lessons = (sentence.text for lesson in told for sentence in sentences(lesson.text))
    left_out = {**known.outdated, **dict.fromkeys(of_lessons, "")}
    found = (
        learnt,
        _state_part(known.states, left_out, session_id, min(MOST_KEPT_TOKENS, int(budget * STATE_SHARE))),
        _pinned_part(known.pinned, min(MOST_KEPT_TOKENS, int(budget * STATE_SHARE))),
    )
    kept = [one for one in found if one is not None]
    levels = settings.injection_budget
    room = budget - sum(one.tokens for one in kept) - estimate_tokens(frame(INTRODUCTION, kind="memory", key=key))
    room = max(0, min(room, MOST_STORY_TOKENS))
    in_passing = _quoted_in(known.passing) - _quoted_in(one for one in known.summaries if one.draft.level == 1)
    left_out |= dict.fromkeys(in_passing, "")
    in_short = [_in_short(one, room, left_out) for one in known.summaries]
    shown = chosen(in_short, {1: levels.l1, 2: levels.l2, 3: levels.l3}, room)
    texts = {one.id: defused(story_of(one.draft, left_out)) for one in shown}
    shown = _within(shown, texts, {1: levels.l1, 2: levels.l2, 3: levels.l3})
    while True:
        parts = [*kept, *([_summaries_part(shown, texts, len(known.summaries))] if shown else [])]
        text = _framed(parts, key)
        tokens = estimate_tokens(text)
        over = max(tokens - budget, parts[-1].tokens - room if shown else 0)
        if over <= 0 or not text:
            return MemorySection(text, tokens, parts)
        if shown:  # what was reckoned is more as a whole: the oldest goes
            oldest = min(shown, key=lambda one: one.draft.last_at)
            texts[oldest.id] = _without_oldest(texts[oldest.id], over)
            shown = [one for one in shown if texts[one.id]]
        else:
            kept = kept[:-1]


def _within(shown: Sequence[Summary], texts: dict[str, str], budgets: Mapping[int, int]) -> list[Summary]:
    """Those of which something is told, the newest within the budgets (C5): what a coarser level leaves of its own is
    the finer ones'. Of one that is too long the newest lines stay."""
    left = {level: sum(budgets[one] for one in budgets if one >= level) for level in budgets}
    for one in sorted(shown, key=lambda one: one.draft.last_at, reverse=True):
        level = min(one.draft.level, COARSEST)
        room = min(left[other] for other in left if other <= level)
        tokens = estimate_tokens(texts[one.id]) + NAME_TOKENS
        if texts[one.id] and tokens > room:
            texts[one.id] = _without_oldest(texts[one.id], tokens - room)
            tokens = estimate_tokens(texts[one.id]) + NAME_TOKENS
        if texts[one.id]:
            left = {other: much - tokens if other <= level else much for other, much in left.items()}
    return [one for one in shown if texts[one.id]]


def _without_oldest(text: str, tokens: int) -> str:
    """Without its first lines, of so many tokens at least; what stays keeps its day, and that its year."""
    lines, at = text.split("\n"), 0
    day: date | None = None
    while at < len(lines) and tokens > 0:
        found = day_of_heading(lines[at], day or LEAP_DAY)
        if found is None:
            tokens -= estimate_tokens(lines[at])
        day = found or day
        at += 1
    if at == len(lines) or day is None:
        return "\n".join(lines[at:])
    found = day_of_heading(lines[at], day)
    return "\n".join([heading(found or day, None), *lines[at + (found is not None) :]])


def _framed(parts: Sequence[TurnPart], key: bytes) -> str:
    if not parts:
        return ""
    return frame("\n\n".join([INTRODUCTION, *(one.text for one in parts)]), kind="memory", key=key)


def _part(kind: PartKind, text: str, items: int, why: str) -> TurnPart:
    return TurnPart(section="memory", kind=kind, tokens=estimate_tokens(text), items=items, why=why, text=text)


def _summaries_part(shown: Sequence[Summary], texts_of: Mapping[str, str], looked_at: int) -> TurnPart:
    texts: list[str] = [STORY]
    heading = ""
    for one in shown:
        named = _LEVELS.get(one.draft.level, _LEVELS[3])
        texts += [named] if named != heading else []
        heading = named
        texts.append(f"[{one.id}] {texts_of[one.id]}")
    why = f"recent in detail, older coarser, within the budget of each level ({len(shown)} of the newest {looked_at})"
    return _part("summaries", "\n".join(texts), len(shown), why)


def lessons_named(memory: TurnMemory) -> list[str]:
    """The lessons that a section tells."""
    lines = [line for part in memory.parts if part.kind == "lessons" for line in (part.text or "").splitlines()]
    return [line.rpartition("[")[2][:-1] for line in lines if line.endswith("]")]


def _lessons_part(known: Known, most_tokens: int) -> tuple[TurnPart | None, list[Lesson]]:
    """As many as fit, the first rather than the last, and which these are; then who they are, and what holds, each
    oldest first."""
    included = [one for one in known.lessons if not _is_told_by_another(one, known)]
    lines = {one.id: _lesson_line(one, known) for one in included}
    of_themselves = {one.id for one in included if _is_of_themselves(one)}
    while included:
        told = sorted(included, key=lambda one: (one.last_seen, one.id))
        who = [lines[one.id] for one in told if one.id in of_themselves]
        holds = [lines[one.id] for one in told if one.id not in of_themselves]
        text = "\n".join([*([WHO, *who] if who else []), *([HOLDS, *holds] if holds else [])])
        if estimate_tokens(text) <= most_tokens:
            part = _part("lessons", text, len(included), "judged by a person, or sure enough, and still so")
            return part, included
        included = included[:-1]
    return None, []


def _is_told_by_another(one: Lesson, known: Known) -> bool:
    """Whether another says it and more: "I write at night." beside "I write at night. Never call me before ten."."""
    if one.id in known.later or one.id in known.before:
        return False
    return any(one.text in other.text and len(one.text) < len(other.text) for other in known.lessons)


def _is_of_themselves(one: Lesson) -> bool:
    """A fact; of those that are quoted, one with themselves in it: "Mein Mann Jan ist der Meister", and not "Eiche ist
    elf Prozent teurer". In a language that is not read nobody can tell."""
    if one.kind != "fact" or one.learnt_by != QUOTED:
        return one.kind == "fact"
    read = in_english(one.text)
    words = "".join(letter if letter.isalpha() else " " for letter in read.lower()).split()
    return not THEMSELVES.isdisjoint(words) or (read == one.text and not is_latin(one.text))


def _lesson_line(one: Lesson, known: Known) -> str:
    said = quoted(" ".join(one.text.split()), LESSON_CHARS).text
    if later := known.later.get(one.id):
        return f"- {_quoted_briefly(later)} (earlier, {_day(one.last_seen)}: {said}) [{one.id}]"
    if before := known.before.get(one.id):
        return f"- {said} (since {_day(one.last_seen)}; before: {_quoted_briefly(before)}) [{one.id}]"
    return f"- {said} ({_day(one.last_seen)}) [{one.id}]"


def _quoted_briefly(text: str) -> str:
    return quoted(" ".join(text.split()), BEFORE_CHARS).text


def story_of(draft: SummaryDraft, left_out: Mapping[str, str]) -> str:
    """A summary as the page tells it. Of one that quotes: what was stated, in the speakers' own voice, and not what was
    asked, played, pasted, corrected since or told as a lesson; the rest is there for who expands it."""
    if draft.summarizer != EXTRACTIVE:
        return draft.text
    lines: list[str] = []
    heading = ""
    for line in draft.text.split("\n"):
        if day_of_heading(line.strip(), date.min) is not None:
            heading = line
            continue
        speaker, said = _spoken(line)
        read = read_sentences(said, is_user=speaker != prompt_text.OWN)
        said_still = (left_out.get(one.text, one.text) for one in read if _is_told(one, speaker))
        told = [text for text in said_still if text]
        if told:
            lines += [heading] if heading else []
            heading = ""
            lines.append(f"{speaker}: {' '.join(told)}" if speaker else " ".join(told))
    return "\n".join(lines)


def _spoken(line: str) -> tuple[str, str]:
    speaker, colon, said = line.partition(": ")
    return (speaker, said) if colon and len(speaker) <= NAME_CHARS else ("", line)


def _quoted_in(summaries: Iterable[Summary]) -> set[str]:
    drafts = [one.draft for one in summaries if one.draft.summarizer == EXTRACTIVE]
    return {one.text for draft in drafts for row in draft.text.split("\n") for one in sentences(_spoken(row)[1])}


def _is_told(one: ReadSentence, speaker: str) -> bool:
    """What happened, and what people said of themselves and their affairs; nothing that a tool printed."""
    is_printed = speaker not in ("", prompt_text.OWN) and not is_person(speaker)
    if is_printed or one.own < OWN or one.text.endswith(("?", "？")):
        return False
    if speaker == prompt_text.OWN:
        tells = one.kind in HAPPENED and one.states >= AGENT_STATED
    elif one.keep >= KEPT:
        return True
    else:
        tells = one.tells >= TELLS
    least = LEAST_UNSPACED if is_unspaced(one.text) else LEAST_WORDS
    return tells and len(one.text if is_unspaced(one.text) else one.text.split()) >= least


def _in_short(one: Summary, room: int, left_out: Collection[str]) -> Summary:
    """With its best lines only, where it is longer, and with as many tokens as are told of it, about."""
    draft = one.draft
    told = TOLD_SHARE if draft.summarizer == EXTRACTIVE else 1.0
    most = int(room * (SHARE_OF_MANY if draft.sources else SHARE_OF_ONE) / told)
    text = draft.text
    if draft.tokens > most:
        rows = text.split("\n")
        rank = [at for at in draft.rank if not all(each.text in left_out for each in sentences(_spoken(rows[at])[1]))]
        short = cut(SummaryLines(text, rank), most * len(text) // draft.tokens).split("\n")
        # A line that had to be cut is not what was said, and one without its day could be of any.
        whole = [row for row in short if row in rows or _is_day(row)]
        text = "\n".join(whole) if whole and _is_day(whole[0]) >= _is_day(rows[0]) else ""
    return replace(one, draft=replace(draft, text=text, tokens=int(min(draft.tokens, most) * told)))


def _is_day(row: str) -> bool:
    return day_of_heading(row.strip(), LEAP_DAY) is not None


def _state_part(
    states: Sequence[SessionState], left_out: Collection[str], session_id: str, most_tokens: int
) -> TurnPart | None:
    """What is going on. What was corrected since or is told as a lesson is no task of its own. What was wanted or done
    in another conversation is over with it: of that, what is open and what runs."""
    texts: list[str] = []
    count = 0
    for one in states:
        records = [
            record
            for record in one.records
            if (one.session_id == session_id or record.kind in GOES_ON)
            and not all(sentence.text in left_out for sentence in sentences(record.text))
        ]
        text = defused(rendered(records, STATE_CHARS))
        if not text:
            continue
        if one.session_id != session_id:
            text = text.replace(DOING, f"What I was doing in another conversation, {_day(one.last_at)}:", 1)
        if estimate_tokens("\n".join([*texts, text])) > most_tokens:
            break
        texts.append(text)
        count += len(records)
    return (
        _part("working state", "\n".join(texts), count, "open, done or running when last heard of") if texts else None
    )


def _pinned_part(pinned: Sequence[str], most_tokens: int) -> TurnPart | None:
    """As many as fit, the newest rather than the oldest."""
    kept = [f"- {text}" for text in pinned]
    while kept:
        text = "\n".join(["Pinned, to be kept in mind:", *kept])
        if estimate_tokens(text) <= most_tokens:
            return _part("pinned", text, len(kept), "pinned by hand")
        kept = kept[1:]
    return None


def _day(at: datetime) -> str:
    # A date rather than "yesterday": the section is read for as long as it stays the same.
    return day_text(at.date(), None)


def pinned_text(message: Message, at: datetime) -> str:
    by = {"assistant": "I", "tool": "A tool", "system": "The system"}.get(message.role) or named(message.name)
    return f"{by} ({_day(at)}): {quoted(render(message), PINNED_CHARS).text}"
