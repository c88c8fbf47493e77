"""The basics of Chinese, Japanese, Korean and Arabic. The words mean what their English ones do."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from offbook.search.times.english_relative import RECENT_DAYS
from offbook.search.times.periods import Asking, InYear, Unit, days, months, part_of_day, years
from offbook.search.times.relations import FoundPeriod
from offbook.search.times.values import Date, Rule, Text, find
from offbook.search.times.words import any_of

_FEW = (2, 6)
_DAYS = {
    "前天": -2, "昨天": -1, "今天": 0, "明天": 1, "一昨日": -2, "昨日": -1, "今日": 0, "明日": 1,
    "おととい": -2, "きのう": -1,
}  # fmt: skip
_KOREAN_DAYS = {"그저께": -2, "그제": -2, "어제": -1, "오늘": 0, "내일": 1}
_ARABIC_DAYS = {"أول أمس": -2, "أمس": -1, "امس": -1, "البارحة": -1, "اليوم": 0, "غدا": 1, "غدًا": 1}
_NIGHTS = {"昨晚": -1, "昨夜": -1, "ゆうべ": -1, "今晚": 0, "今夜": 0, "어젯밤": -1, "오늘 밤": 0, "الليلة الماضية": -1}
_MORNINGS = ("今早", "今天早上", "今朝", "오늘 아침", "هذا الصباح")
_RECENTLY = ("最近", "近日", "前几天", "前幾天", "先日", "최근", "요즘", "며칠 전", "مؤخرا", "مؤخرًا")
_OFFSETS = {
    "上上": -2, "上个": -1, "上個": -1, "上": -1, "这个": 0, "這個": 0, "这": 0, "本": 0, "下个": 1, "下": 1,
    "先々": -2, "先": -1, "今": 0, "来": 1, "지지난": -2, "지난": -1, "저번": -1, "이번": 0, "다음": 1,
}  # fmt: skip
_YEARS = {"前年": -2, "一昨年": -2, "去年": -1, "昨年": -1, "今年": 0, "明年": 1, "来年": 1}
_KOREAN_YEARS = {"재작년": -2, "작년": -1, "지난해": -1, "올해": 0, "내년": 1}

_HAN_DIGITS = {letter: value for value, letter in enumerate("一二三四五六七八九十", start=1)} | {"两": 2, "兩": 2}
_HAN_UNITS: dict[str, Unit] = {
    "分钟": "minute", "分": "minute", "小时": "hour", "小時": "hour", "時間": "hour", "天": "day", "日": "day",
    "周": "week", "週間": "week", "星期": "week", "个星期": "week", "礼拜": "week", "个月": "month", "個月": "month",
    "か月": "month", "ヶ月": "month", "カ月": "month", "ケ月": "month", "年": "year",
}  # fmt: skip
_WEEKDAYS = {letter: number for number, letter in enumerate("一二三四五六日")} | {"天": 6}
_WEEKDAYS |= {letter: number for number, letter in enumerate("月火水木金土日")}
_WEEKDAYS |= {letter: number for number, letter in enumerate("월화수목금토일")}

_KOREAN_NUMBERS = {"한": 1, "두": 2, "세": 3, "네": 4, "다섯": 5, "몇": 0}
_KOREAN_UNITS: dict[str, Unit] = {
    "분": "minute", "시간": "hour", "일": "day", "주": "week", "주일": "week",
    "개월": "month", "달": "month", "년": "year",
}  # fmt: skip
_KOREAN_COUNTS: dict[str, tuple[int, Unit]] = {
    "하루": (1, "day"), "이틀": (2, "day"), "사흘": (3, "day"), "나흘": (4, "day"), "일주일": (1, "week"),
}  # fmt: skip

_ARABIC_UNITS: dict[str, tuple[Unit, int]] = {
    "يومين": ("day", 2), "أسبوعين": ("week", 2), "شهرين": ("month", 2), "سنتين": ("year", 2), "عامين": ("year", 2),
    "ساعتين": ("hour", 2), "يوم": ("day", 1), "أيام": ("day", 1), "أسبوع": ("week", 1), "أسابيع": ("week", 1),
    "شهر": ("month", 1), "أشهر": ("month", 1), "شهور": ("month", 1), "سنة": ("year", 1), "سنوات": ("year", 1),
    "عام": ("year", 1), "أعوام": ("year", 1), "ساعة": ("hour", 1), "ساعات": ("hour", 1),
}  # fmt: skip
_ARABIC_NUMBERS = {
    "ثلاث": 3, "أربع": 4, "خمس": 5, "ست": 6, "سبع": 7, "ثمان": 8, "ثماني": 8, "تسع": 9, "عشر": 10, "عدة": 0, "بضع": 0,
}  # fmt: skip
_ARABIC_WEEKDAYS = {
    "الاثنين": 0, "الإثنين": 0, "الثلاثاء": 1, "الأربعاء": 2, "الخميس": 3, "الجمعة": 4, "السبت": 5, "الأحد": 6,
}  # fmt: skip
_ARABIC_MONTHS = {
    "يناير": 1, "فبراير": 2, "مارس": 3, "أبريل": 4, "إبريل": 4, "مايو": 5, "يونيو": 6, "يوليو": 7, "أغسطس": 8,
    "سبتمبر": 9, "أكتوبر": 10, "نوفمبر": 11, "ديسمبر": 12,
}  # fmt: skip


def _han(pattern: str) -> re.Pattern[str]:
    """With the particle that joins it to what follows."""
    return re.compile(rf"(?<!\d)(?:{pattern})[的の]?")


def _korean(pattern: str) -> re.Pattern[str]:
    """At the beginning of a word, with the particle at its end."""
    return re.compile(rf"(?<![가-힣\d])(?:{pattern})(?:(?:에는|에|의|은|는)(?![가-힣]))?")


def _arabic(pattern: str) -> re.Pattern[str]:
    letters = "\u0621-\u064a"
    return re.compile(rf"(?<![{letters}\d])(?:{pattern})(?![{letters}\d])".replace(" ", " +"))


def _han_number(word: str) -> int:
    """0 for a few."""
    if word.isdecimal():
        return int(word)
    tens, ten, ones = word.rpartition("十")
    if not ten:
        return _HAN_DIGITS.get(word, 0)
    return 10 * _HAN_DIGITS.get(tens, 1) + _HAN_DIGITS.get(ones, 0)


def _counted(count: int, unit: Unit, asking: Asking) -> Date:
    fewest, most = (count, count) if count else _FEW
    return Date(asking.ago(fewest, most, unit), is_exact=count > 0)


def _han_ago(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return _counted(_han_number(found[1]), _HAN_UNITS[found[2]], asking)


def _korean_ago(found: re.Match[str], asking: Asking, _: Text) -> Date:
    words, number, unit = found.groups()
    if words:
        return _counted(*_KOREAN_COUNTS[words], asking)
    return _counted(_KOREAN_NUMBERS[number] if number in _KOREAN_NUMBERS else int(number), _KOREAN_UNITS[unit], asking)


def _arabic_ago(found: re.Match[str], asking: Asking, _: Text) -> Date:
    number, word = found.groups()
    unit, size = _ARABIC_UNITS[word]
    count = 1 if number is None else int(number) if number.isdecimal() else _ARABIC_NUMBERS[number.removesuffix("ة")]
    return _counted(count * size, unit, asking)


def _day(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return Date(asking.day((_DAYS | _KOREAN_DAYS | _ARABIC_DAYS)[" ".join(found[1].split())]))


def _night(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return Date(part_of_day(asking.today + timedelta(days=_NIGHTS[found[1]]), "night"))


def _morning(_: re.Match[str], asking: Asking, __: Text) -> Date:
    return Date(part_of_day(asking.today, "morning"))


def _recently(_: re.Match[str], asking: Asking, __: Text) -> Date:
    return Date(asking.past(RECENT_DAYS, "day"), is_exact=False)


def _week(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return Date(asking.week(_OFFSETS[found[1]]))


def _weekend(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return Date(asking.weekend(max(-1, _OFFSETS[found[1]])))


def _month(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return Date(asking.month(_OFFSETS[found[1]]))


def _weekday(found: re.Match[str], asking: Asking, _: Text) -> Date:
    which, number = found[1], _WEEKDAYS[found[2]]
    if not which:
        return Date(days(asking.weekday(number)))
    return Date(days(asking.week(_OFFSETS[which]).start.date() + timedelta(days=number)))


def _year(found: re.Match[str], asking: Asking, _: Text) -> Date:
    return Date(years(_year_number(found[1], asking)))


def _year_number(word: str, asking: Asking) -> int:
    offset = (_YEARS | _KOREAN_YEARS).get(word)
    return int(word[:4]) if offset is None else asking.today.year + offset


def _month_or_day(month: int, day: int | None) -> InYear:
    return lambda year: days(date(year, month, day)) if day is not None else months(year, month)


def _date(found: re.Match[str], asking: Asking, _: Text) -> Date:
    year, month, day = found.groups()
    in_year = _month_or_day(_han_number(month), _han_number(day) if day else None)
    return Date(in_year(_year_number(year, asking)) if year else asking.recent(in_year))


def _arabic_unit(found: re.Match[str], asking: Asking, _: Text) -> Date | None:
    this, noun, last = found.groups()
    if not this and not last:
        return None
    unit = _ARABIC_UNITS[noun][0]
    return Date({"week": asking.week, "month": asking.month, "year": asking.year}[unit](-1 if last else 0))


def _arabic_weekday(found: re.Match[str], asking: Asking, _: Text) -> Date | None:
    day_word, name, last = found.groups()
    if not day_word and not last:
        return None
    return Date(days(asking.weekday(_ARABIC_WEEKDAYS[name], before_today=bool(last))))


def _arabic_date(found: re.Match[str], asking: Asking, _: Text) -> Date | None:
    preposition, day, month, year = found.groups()
    if not preposition and not day and not year:
        return None
    in_year = _month_or_day(_ARABIC_MONTHS[month], int(day) if day else None)
    return Date(in_year(int(year)) if year else asking.recent(in_year))


_HAN_COUNT = r"\d{1,3}|[一二两兩三四五六七八九十]{1,3}|几|幾|数"
_HAN_PART = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
_HAN_YEAR = rf"((?:19|20)\d\d ?年|{any_of(_YEARS)})"
_HAN_WHICH = "(上上|上个|上個|上|这个|這個|这|本|下个|下)"
_JAPANESE_WHICH = "(先々|先|今|来)"
_KOREAN_YEAR = rf"((?:19|20)\d\d ?년|{any_of(_KOREAN_YEARS)})"
_KOREAN_WHICH = "(지지난|지난|저번|이번|다음)"
_KOREAN_COUNT = rf"({any_of(_KOREAN_COUNTS)})|(\d{{1,3}}|{any_of(_KOREAN_NUMBERS)}) ?({any_of(_KOREAN_UNITS)})"
_ARABIC_COUNT = rf"\d{{1,3}}|(?:{any_of(_ARABIC_NUMBERS)})ة?"

RULES: tuple[Rule, ...] = (
    (_han(rf"(?<!月)({_HAN_COUNT})({any_of(_HAN_UNITS)})(?:以|之)?前"), _han_ago),
    (_han(rf"(?:{_HAN_YEAR} ?の?)?({_HAN_PART}) ?月(?: ?({_HAN_PART}) ?[日号號])?"), _date),
    (_han(rf"{_HAN_WHICH}?(?<![一每毎])(?:周|週|星期|礼拜)([一二三四五六日天])"), _weekday),
    (_han(rf"(?<!毎週)(?:{_JAPANESE_WHICH}週の?)?([月火水木金土日])曜日?"), _weekday),
    (_han(rf"{_HAN_WHICH}(?:周|週|星期|礼拜)末"), _weekend),
    (_han(rf"{_JAPANESE_WHICH}週末"), _weekend),
    (_han(rf"{_HAN_WHICH}(?:周|週|星期|礼拜)"), _week),
    (_han(rf"{_JAPANESE_WHICH}週"), _week),
    (_han(rf"{_HAN_WHICH}月"), _month),
    (_han(rf"{_JAPANESE_WHICH}月"), _month),
    (_han(any_of(_RECENTLY)), _recently),
    (_han(any_of(_MORNINGS)), _morning),
    (_han(rf"({any_of(_NIGHTS)})"), _night),
    (_han(rf"({any_of(_DAYS)})"), _day),
    (_han(_HAN_YEAR), _year),
    (
        _korean(rf"(?:{_KOREAN_COUNT}) ?전(?!체|부|화)"),
        _korean_ago,
    ),
    (_korean(rf"(?:{_KOREAN_YEAR} ?)?(\d{{1,2}})월(?: ?(\d{{1,2}})일)?"), _date),
    (_korean(rf"(?<!매주 )(?:{_KOREAN_WHICH} ?주 ?)?([월화수목금토일])요일"), _weekday),
    (_korean(rf"{_KOREAN_WHICH} ?주말"), _weekend),
    (_korean(rf"{_KOREAN_WHICH} ?주"), _week),
    (_korean(rf"{_KOREAN_WHICH} ?달"), _month),
    (_korean(rf"({any_of(_KOREAN_DAYS)})(?!날)"), _day),
    (_korean(_KOREAN_YEAR), _year),
    (_arabic(rf"(?:قبل|منذ) (?:({_ARABIC_COUNT}) )?({any_of(_ARABIC_UNITS)})"), _arabic_ago),
    (_arabic(r"(?:(هذا|هذه) )?ال(أسبوع|شهر|سنة|عام)(?: (الماضي|الماضية|الفائت|السابق))?"), _arabic_unit),
    (_arabic(rf"(يوم )?({any_of(_ARABIC_WEEKDAYS)})( الماضي)?"), _arabic_weekday),
    (_arabic(rf"(في )?(?:(\d{{1,2}}) )?({any_of(_ARABIC_MONTHS)})(?: ((?:19|20)\d\d))?"), _arabic_date),
    (_arabic(rf"({any_of(_ARABIC_DAYS)})(?! ال)"), _day),
)
_UP_TO = ("以前", "之前", "이전")
_FROM_ITS_END = ("以后", "之后", "以後", "之後", "이후")
_FROM_ITS_BEGINNING = ("以来", "以來", "以降", "から", "부터")


def find_ranges(asking: Asking, text: Text) -> list[FoundPeriod]:
    if text.plain.isascii():  # every rule has a sign that is not
        return []
    return [_bound(date, text) for date in find(RULES, asking, text)]


def _bound(date: Date, text: Text) -> FoundPeriod:
    """In these languages "before" and "after" stand behind the date."""
    start: datetime | None = date.period.start
    end: datetime | None = date.period.end
    last = date.last
    behind = text.plain[last : last + 2]  # each of the words has two signs
    if behind in _UP_TO:
        start, end, last = None, start, last + 2
    elif behind in _FROM_ITS_END:
        start, end, last = end, None, last + 2
    elif behind in _FROM_ITS_BEGINNING:
        end, last = None, last + 2
    return FoundPeriod(date.first, last, start, end, date.is_exact)
