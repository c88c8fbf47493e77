from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.models.glossary import in_english
from offbook.search.times import EventBound, QueryTimes, read_times, without_times
from offbook.search.times.reordered import reordered

ASKED_AT = datetime(2026, 11, 18, 15, 0, tzinfo=UTC)
"""A Wednesday."""


def moment(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


def one_range(query: str) -> tuple[datetime | None, datetime | None, bool]:
    (found,) = read_times(query, ASKED_AT).ranges
    return found.start, found.end, found.is_exact


EXACT = [
    ("today", "2026-11-18", "2026-11-19"),
    ("earlier today", "2026-11-18", "2026-11-19"),
    ("yesterday", "2026-11-17", "2026-11-18"),
    ("yesterday's call", "2026-11-17", "2026-11-18"),
    ("the day before yesterday", "2026-11-16", "2026-11-17"),
    ("tomorrow", "2026-11-19", "2026-11-20"),
    ("tonight", "2026-11-18T18", "2026-11-19T06"),
    ("last night", "2026-11-17T18", "2026-11-18T06"),
    ("this morning", "2026-11-18T04", "2026-11-18T12"),
    ("yesterday afternoon", "2026-11-17T12", "2026-11-17T18"),
    # weekdays
    ("what I said on Tuesday", "2026-11-17", "2026-11-18"),
    ("what did I do Tuesday?", "2026-11-17", "2026-11-18"),
    ("on Wednesday", "2026-11-18", "2026-11-19"),
    ("last Wednesday", "2026-11-11", "2026-11-12"),
    ("last Tuesday", "2026-11-17", "2026-11-18"),
    ("last  Fri", "2026-11-13", "2026-11-14"),
    ("next Friday", "2026-11-20", "2026-11-21"),
    ("Tuesday night", "2026-11-17T18", "2026-11-18T06"),
    ("last week on Tuesday", "2026-11-10", "2026-11-11"),
    ("Tuesday of last week", "2026-11-10", "2026-11-11"),
    # ago
    ("an hour ago", "2026-11-18T13:30", "2026-11-18T14:30"),
    ("20 minutes ago", "2026-11-18T14:35", "2026-11-18T14:45"),
    ("a day ago", "2026-11-17", "2026-11-18"),
    ("three days ago", "2026-11-15", "2026-11-16"),
    ("five days ago", "2026-11-12", "2026-11-15"),
    ("two weeks ago", "2026-10-30", "2026-11-10"),
    ("2 months ago", "2026-08-29", "2026-10-09"),
    ("two years back", "2024-03-23", "2025-07-17"),
    # units
    ("last week", "2026-11-09", "2026-11-16"),
    ("the week before last", "2026-11-02", "2026-11-09"),
    ("this week", "2026-11-16", "2026-11-23"),
    ("earlier this month", "2026-11-01", "2026-11-19"),
    ("last month", "2026-10-01", "2026-11-01"),
    ("last quarter", "2026-07-01", "2026-10-01"),
    ("last year", "2025-01-01", "2026-01-01"),
    ("last weekend", "2026-11-14", "2026-11-16"),
    ("over the weekend", "2026-11-14", "2026-11-16"),
    ("last summer", "2026-06-01", "2026-09-01"),
    ("last spring", "2026-03-01", "2026-06-01"),
    ("last fall", "2025-09-01", "2025-12-01"),
    ("in the fall", "2026-09-01", "2026-12-01"),
    ("in the summer of 2022", "2022-06-01", "2022-09-01"),
    ("over the past week", "2026-11-11", "2026-11-19"),
    ("in the last 3 days", "2026-11-15", "2026-11-19"),
    ("within the last two hours", "2026-11-18T13", "2026-11-18T15:01"),
    ("the past six months", "2026-05-18", "2026-11-19"),
    # the calendar
    ("in May", "2026-05-01", "2026-06-01"),
    ("in may we went to Rome", "2026-05-01", "2026-06-01"),
    ("In May I went to Rome", "2026-05-01", "2026-06-01"),
    ("it rained in June or so", "2026-06-01", "2026-07-01"),
    ("in December", "2025-12-01", "2026-01-01"),
    ("in November", "2026-11-01", "2026-12-01"),
    ("last November", "2025-11-01", "2025-12-01"),
    ("in May 2023", "2023-05-01", "2023-06-01"),
    ("May 2023", "2023-05-01", "2023-06-01"),
    ("in May last year", "2025-05-01", "2025-06-01"),
    ("last year in May", "2025-05-01", "2025-06-01"),
    ("May 7", "2026-05-07", "2026-05-08"),
    ("Thursday, May 7th, 2026", "2026-05-07", "2026-05-08"),
    ("7 May 2023", "2023-05-07", "2023-05-08"),
    ("on the 7th of may", "2026-05-07", "2026-05-08"),
    ("the fourth of July", "2026-07-04", "2026-07-05"),
    ("Dec. 3, 2024", "2024-12-03", "2024-12-04"),
    ("Feb 29", "2024-02-29", "2024-03-01"),
    ("on the 7th", "2026-11-07", "2026-11-08"),
    ("on the 30th", "2026-10-30", "2026-10-31"),
    ("on 2023-05-08", "2023-05-08", "2023-05-09"),
    ("2023-05-08T10:00", "2023-05-08", "2023-05-09"),
    ("5/8/2023", "2023-05-08", "2023-05-09"),
    ("13/8/2023", "2023-08-13", "2023-08-14"),
    ("on 5/8", "2026-05-08", "2026-05-09"),
    ("8.5.2023", "2023-05-08", "2023-05-09"),
    ("in 2022", "2022-01-01", "2023-01-01"),
    ("in Q3 2024", "2024-07-01", "2024-10-01"),
    ("in the 1990s", "1990-01-01", "2000-01-01"),
    ("the first week of June", "2026-06-01", "2026-06-08"),
    ("in the last week of June 2025", "2025-06-24", "2025-07-01"),
    ("week of May 7", "2026-05-04", "2026-05-11"),
    ("last Christmas", "2025-12-24", "2025-12-27"),
    ("on New Year's Eve", "2025-12-31", "2026-01-01"),
    ("Thanksgiving 2023", "2023-11-23", "2023-11-24"),
    ("Easter 2024", "2024-03-29", "2024-04-02"),
    # from one to the other
    ("between May and July", "2026-05-01", "2026-08-01"),
    ("between May and July 2023", "2023-05-01", "2023-08-01"),
    ("between November and February", "2025-11-01", "2026-03-01"),
    ("from 3 March to 10 March", "2026-03-03", "2026-03-11"),
    ("March 3-10", "2026-03-03", "2026-03-11"),
    ("between 2020 and 2022", "2020-01-01", "2023-01-01"),
    ("from Friday to Monday", "2026-11-13", "2026-11-17"),
    ("before 2023", "", "2023-01-01"),
    ("after June", "2026-07-01", ""),
    ("by June 2024", "", "2024-07-01"),
    ("until October", "", "2026-11-01"),
    ("since Monday", "2026-11-16", ""),
    ("ever since last May", "2026-05-01", ""),
    ("from May onwards", "2026-05-01", ""),
    ("before Tuesday's meeting", "", "2026-11-18"),
    ("after Tuesday's meeting", "2026-11-17", ""),
    # Chinese
    ("今天的会议", "2026-11-18", "2026-11-19"),
    ("昨天我们说了什么", "2026-11-17", "2026-11-18"),
    ("前天", "2026-11-16", "2026-11-17"),
    ("上周", "2026-11-09", "2026-11-16"),
    ("上周二的会议", "2026-11-10", "2026-11-11"),
    ("上星期二", "2026-11-10", "2026-11-11"),
    ("上个月", "2026-10-01", "2026-11-01"),
    ("去年", "2025-01-01", "2026-01-01"),
    ("去年5月", "2025-05-01", "2025-06-01"),
    ("两周前", "2026-10-30", "2026-11-10"),
    ("三天前", "2026-11-15", "2026-11-16"),
    ("两个月前", "2026-08-29", "2026-10-09"),
    ("5月", "2026-05-01", "2026-06-01"),
    ("2023年5月", "2023-05-01", "2023-06-01"),
    ("5月8日", "2026-05-08", "2026-05-09"),
    ("十二月二十五日", "2025-12-25", "2025-12-26"),
    ("2023年以前", "", "2023-01-01"),
    # Japanese
    ("昨日の話", "2026-11-17", "2026-11-18"),
    ("先週", "2026-11-09", "2026-11-16"),
    ("先週の火曜日", "2026-11-10", "2026-11-11"),
    ("先月", "2026-10-01", "2026-11-01"),
    ("三日前", "2026-11-15", "2026-11-16"),
    ("3日前", "2026-11-15", "2026-11-16"),
    ("2023年5月8日から", "2023-05-08", ""),
    # Korean
    ("어제 뭐 먹었지", "2026-11-17", "2026-11-18"),
    ("지난주에 한 이야기", "2026-11-09", "2026-11-16"),
    ("지난달", "2026-10-01", "2026-11-01"),
    ("작년", "2025-01-01", "2026-01-01"),
    ("2주 전에", "2026-10-30", "2026-11-10"),
    ("이틀 전", "2026-11-16", "2026-11-17"),
    ("5월 8일", "2026-05-08", "2026-05-09"),
    # Arabic
    ("ماذا قلنا أمس؟", "2026-11-17", "2026-11-18"),
    ("الأسبوع الماضي", "2026-11-09", "2026-11-16"),
    ("الشهر الماضي", "2026-10-01", "2026-11-01"),
    ("قبل يومين", "2026-11-16", "2026-11-17"),
    ("قبل أسبوعين", "2026-10-30", "2026-11-10"),
    ("قبل ٣ أيام", "2026-11-15", "2026-11-16"),
    ("في مايو 2023", "2023-05-01", "2023-06-01"),
]


@pytest.mark.parametrize(("query", "start", "end"), EXACT)
def test_what_is_exact(query: str, start: str, end: str) -> None:
    assert one_range(query) == (moment(start), moment(end), True)


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("recently", "2026-11-04", "2026-11-19"),
        ("the other day", "2026-11-04", "2026-11-19"),
        ("a couple of months ago", "2026-07-29", "2026-10-09"),
        ("a few weeks ago", "2026-10-09", "2026-11-10"),
        ("several days ago", "2026-11-09", "2026-11-16"),
        ("about a year ago", "2025-03-23", "2026-07-17"),
        ("a while ago", "2025-12-29", "2026-11-08"),
        ("in the last few weeks", "2026-10-14", "2026-11-19"),
        ("early May", "2026-05-01", "2026-05-11"),
        ("mid-May", "2026-05-11", "2026-05-21"),
        ("late May 2023", "2023-05-21", "2023-06-01"),
        ("at the end of last month", "2026-10-21", "2026-11-01"),
        ("around May", "2026-04-21", "2026-06-11"),
        ("by June", "", "2026-07-01"),
        # Said in the middle of the week, it may be the one to come.
        ("this Friday", "2026-11-13", "2026-11-14"),
        ("this weekend", "2026-11-14", "2026-11-16"),
        # What was given was talked about at other times too.
        ("what did I give her for Christmas", "2025-12-24", "2025-12-27"),
        ("几天前", "2026-11-11", "2026-11-17"),
        ("最近", "2026-11-04", "2026-11-19"),
        # languages that are read as English, each with its own order
        ("Was haben wir am 23. September besprochen?", "2026-09-23", "2026-09-24"),
        ("Was habe ich gestern über das Boot gesagt?", "2026-11-17", "2026-11-18"),
        ("Was war vor drei Tagen mit dem Server?", "2026-11-15", "2026-11-16"),
        ("Was hat Ana im März erzählt?", "2026-03-01", "2026-04-01"),
        ("Il y a trois jours, on parlait de quoi ?", "2026-11-15", "2026-11-16"),
        ("la semaine dernière on a parlé du jardin", "2026-11-09", "2026-11-16"),
        ("avant-hier, qu'est-ce que le médecin a dit ?", "2026-11-16", "2026-11-17"),
        ("hace tres días hablamos de qué", "2026-11-15", "2026-11-16"),
        ("el 3 de mayo, ¿qué decidimos?", "2026-05-03", "2026-05-04"),
        ("tre giorni fa di cosa parlavamo?", "2026-11-15", "2026-11-16"),
        ("la settimana scorsa abbiamo parlato del giardino", "2026-11-09", "2026-11-16"),
        ("Há três dias falamos de quê?", "2026-11-15", "2026-11-16"),
        ("Drie dagen geleden hadden we het over de boot", "2026-11-15", "2026-11-16"),
        ("ayer por la mañana", "2026-11-17T04", "2026-11-17T12"),
    ],
)
def test_what_is_vague(query: str, start: str, end: str) -> None:
    assert one_range(query) == (moment(start), moment(end), False)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "may I ask you something",
        "I may go",
        "this may be wrong",
        "THIS MAY WORK",
        "may 7 people come",
        "tell May about the party",
        "a letter from June",
        "the budget for May",
        "the May release notes",
        "in May's house",
        "ask April about it",
        "we march 7 miles",
        "the march on Washington",
        "a second opinion in a second",
        "the sun and where I last sat",
        "leaves fall",
        "the fall of Rome",
        "the spring framework",
        "python 3.11 notes",
        "python 3.11.20",
        "version 2023.05.08",
        "24/7 support",
        "on 24/7 duty",
        "3/4 of the team",
        "in 2000 words",
        "port 2023",
        "$2023",
        "31 February",
        "2023-13-45",
        "9999 years ago",
        "1.5 years ago",
        "every Friday",
        "Black Friday deals",
        "the Monday meeting",
        "on the 7th floor",
        "at the last minute",
        "the last 20 messages",
        "last time",
        "in the past",
        "Christmas presents",
        "一周一次",
        "每周二",
        "오늘날",
        "before that",
        "have we met before?",
        "before I forget",
        "before long, after all",
        "who came after me",
        "look after the kids",
        "day after day, one after another",
        "since I like tea",
        "since you're here",
        "since the server is down",
        "during the trip",
        "when the trip happened",
        "¿Qué tomo por la mañana con el café?",
        "Was trinke ich am Morgen immer?",
    ],
)
def test_what_is_no_time(query: str) -> None:
    assert read_times(query, ASKED_AT) == QueryTimes()


@pytest.mark.parametrize(
    ("query", "relation", "event", "phrase"),
    [
        ("what did we eat before the move?", "before", "the move", "before the move"),
        ("Before the accident, did I run?", "before", "the accident", "Before the accident"),
        ("before the move what was my address", "before", "the move", "before the move"),
        ("before the move did I have a cat", "before", "the move", "before the move"),
        ("who called after we launched", "after", "we launched", "after we launched"),
        ("how is my knee since the surgery", "after", "the surgery", "since the surgery"),
        ("ever since I was a child", "after", "I was a child", "ever since I was a child"),
        ("until the launch", "before", "the launch", "until the launch"),
        ("prior to version 2.0", "before", "version 2.0", "prior to version 2.0"),
        ("two days after the surgery", "after", "the surgery", "two days after the surgery"),
        ("before April left", "before", "April left", "before April left"),
        ("after the meeting about the budget", "after", "the meeting", "after the meeting"),
        ("after a b c d e f g h i j", "after", "a b c d e f g h", "after a b c d e f g h"),
    ],
)
def test_bounds_by_an_event(query: str, relation: str, event: str, phrase: str) -> None:
    times = read_times(query, ASKED_AT)
    assert times.bounds == (EventBound(relation=relation, event=event, phrase=phrase),)  # type: ignore[arg-type]
    assert times.ranges == ()


def test_the_date_of_an_event_is_open_on_its_side() -> None:
    before = read_times("what I packed before the trip in May", ASKED_AT)
    assert [bound.event for bound in before.bounds] == ["the trip"]
    assert [(one.start, one.end, one.phrase) for one in before.ranges] == [(None, moment("2026-06-01"), "in May")]
    after = read_times("after the trip in May", ASKED_AT)
    assert [(one.start, one.end) for one in after.ranges] == [(moment("2026-05-01"), None)]


def test_a_bound_beside_the_date_of_an_event_stays_as_it_is() -> None:
    times = read_times("before the move after 2020", ASKED_AT)
    assert [(one.start, one.end) for one in times.ranges] == [(moment("2021-01-01"), None)]


def test_several_times_in_the_order_they_are_said() -> None:
    times = read_times("Did I run more in May than last week, or after the surgery?", ASKED_AT)
    assert [one.phrase for one in times.ranges] == ["in May", "last week"]
    assert [one.phrase for one in times.bounds] == ["after the surgery"]


def test_a_list_shares_its_preposition() -> None:
    times = read_times("where was I in May, June and July", ASKED_AT)
    assert [one.start for one in times.ranges] == [moment(f"2026-0{month}-01") for month in (5, 6, 7)]
    assert len(read_times("what did I do in May and April said no", ASKED_AT).ranges) == 1


def test_days_are_those_of_the_asker() -> None:
    late = datetime(2026, 11, 18, 23, 30, tzinfo=UTC)
    (tokyo,) = read_times("today", late, ZoneInfo("Asia/Tokyo")).ranges
    assert (tokyo.start, tokyo.end) == (moment("2026-11-18T15:00"), moment("2026-11-19T15:00"))
    (same,) = read_times("today", late.astimezone(timezone(timedelta(hours=-9))), ZoneInfo("Asia/Tokyo")).ranges
    assert same == tokyo


def test_a_day_on_which_the_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    (day,) = read_times("on 2026-10-25", ASKED_AT, berlin).ranges
    assert (day.start, day.end) == (moment("2026-10-24T22:00"), moment("2026-10-25T23:00"))
    # 02:10 for the second time: an hour before it is 02:10 for the first.
    again = datetime(2026, 10, 25, 1, 10, tzinfo=UTC)
    (hour,) = read_times("an hour ago", again, berlin).ranges
    assert (hour.start, hour.end) == (again - timedelta(minutes=90), again - timedelta(minutes=30))


def test_a_midnight_that_does_not_exist() -> None:
    (day,) = read_times("on 2018-11-04", ASKED_AT, ZoneInfo("America/Sao_Paulo")).ranges
    assert (day.start, day.end) == (moment("2018-11-04T03:00"), moment("2018-11-05T02:00"))


def test_a_day_that_was_left_out_is_no_range() -> None:
    """Samoa went over the date line."""
    assert read_times("on 2011-12-30", ASKED_AT, ZoneInfo("Pacific/Apia")) == QueryTimes()


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("What did we decide last Tuesday?", "What did we decide?"),
        ("Since the surgery, how is my knee", "how is my knee"),
        ("what did I say in Mayfair in May", "what did I say in Mayfair"),
        ("yesterday's meeting about the budget", "meeting about the budget"),
        ("what happened a week before Christmas", "what happened"),
        ("上周二的会议", "会议"),
        ("지난주에 한 이야기", "한 이야기"),
        ("no time  in this one", "no time  in this one"),
        ("last week?", "last week?"),
        ("  ", "  "),
        ("", ""),
    ],
)
def test_a_query_without_its_times(query: str, rest: str) -> None:
    assert without_times(query, read_times(query, ASKED_AT)) == rest


def test_only_the_beginning_is_read() -> None:
    assert read_times("x" * 2_000 + " yesterday", ASKED_AT) == QueryTimes()


WORDS = """
    before after since until by from between and to in on the of last this next past early mid late end week month year
    years days ago 2 3 31 9999 2023 may May march friday Tuesday's weekend summer fall winter christmas easter a few
    couple recently q3 5/8/2023 2024-02-30 feb 29 29th , . ? - ' I we moved it is 上周 三天前 5月 31日 前 지난주 9월 قبل أسبوعين
    İ ſ ٣ decades hours minutes around 第 去年
"""
QUERIES = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS.split()), max_size=30).map(" ".join))
ZONES = st.sampled_from([UTC, *map(ZoneInfo, ["Europe/Berlin", "America/New_York", "Asia/Tokyo", "America/Sao_Paulo"])])
MOMENTS = st.datetimes(datetime(1901, 1, 1), datetime(8999, 12, 31), timezones=st.just(UTC))


@given(QUERIES, MOMENTS, ZONES)
def test_any_query_at_any_time(query: str, asked_at: datetime, zone: ZoneInfo) -> None:
    times = read_times(query, asked_at, zone)
    read = query, reordered(in_english(query))
    for one in times.ranges:
        assert one.phrase.strip()
        assert any(one.phrase in text for text in read)
        assert one.start is not None or one.end is not None
        assert all(edge is None or edge.utcoffset() == timedelta() for edge in (one.start, one.end))
        assert one.start is None or one.end is None or one.start < one.end
    for bound in times.bounds:
        assert bound.event in bound.phrase
        assert any(bound.phrase in text for text in read)
        assert 1 <= len(bound.event.split()) <= 8
    rest = without_times(query, times)
    assert rest == query or any(letter.isalnum() for letter in rest)


@given(st.sampled_from([query for query, _, _ in EXACT]), MOMENTS, ZONES)
def test_every_phrase_is_read_at_any_time(query: str, asked_at: datetime, zone: ZoneInfo) -> None:
    assert len(read_times(query, asked_at, zone).ranges) == 1


@pytest.mark.parametrize(
    "unit", ["may 7 ", "before the ", "in the last few ", "between may and ", "1/", " ", "上", "قبل "]
)
def test_no_query_takes_forever(unit: str) -> None:
    query = (unit * 10_000)[:10_000]
    without_times(query, read_times(query, ASKED_AT))


@pytest.mark.parametrize(
    ("query", "year"),
    [("What was concluded on 29 July?", 2024), ("What happened in May 2025?", 2025), ("7月29日呢?", 2024)],
)
def test_a_date_without_a_year_is_none_after_the_newest_there_is(query: str, year: int) -> None:
    asked_at, newest = datetime(2026, 11, 19, tzinfo=UTC), datetime(2025, 3, 2, tzinfo=UTC)
    (found,) = read_times(query, asked_at, newest=newest).ranges
    assert found.start is not None
    assert found.start.year == year


def test_a_newest_of_the_future_changes_nothing() -> None:
    asked_at, newest = datetime(2026, 6, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    assert read_times("on 3 June", asked_at, newest=newest) == read_times("on 3 June", asked_at)
