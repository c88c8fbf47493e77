"""How people state lasting facts: the patterns of `facts`, each anchored at the beginning of a clause and bounded."""

from __future__ import annotations

import re

_LEAD = (
    r"(?:(?:oh|ah|hey|hi|hello|well|so|and|but|ok|okay|yes|yeah|no|sorry|oops|wait|also|fyi|btw|by the way|just "
    r"so you know|"
    r"actually|now|note|update|correction|remember|please remember|remember that|please note that|note that|for "
    r"the record|"
    r"as of (?:today|now)|from now on|hmm|anyway|right)\b[\s,:;.!-]*){0,4}"
)
_IS = (
    r"(?:is now|are now|is currently|is|are|'s now|has changed to|has been changed to|was changed to|changed "
    r"to|has moved to|was moved to|moved to|=)"
)
CALLED = re.compile(r"(?:now )?(?:called|named) ", re.I)
_PHRASE = r"(?P<value>(?:[^,;:!?。！？，\n]|(?<=\d)[,:](?=\d)){1,80})"
_ATTRIBUTE = r"(?P<attribute>[\w'-]+(?: [\w'-]+){0,3}?)"
OWNED = re.compile(
    rf"{_LEAD}(?P<owner>my|our|the|[A-Z][\w-]{{1,20}}'s) (?P<new>new |current )?{_ATTRIBUTE} {_IS} {_PHRASE}", re.I
)
PLAIN: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("live", re.compile(_LEAD + r"i(?:'m| am)? (?:now )?(?:live|living|based|reside) (?:now )?in " + _PHRASE, re.I)),
    (
        "live",
        re.compile(
            _LEAD + r"(?:i|we)(?:'ve| have)? (?:just |recently |finally )?(?P<change>moved|relocated) to " + _PHRASE,
            re.I,
        ),
    ),
    (
        "work",
        re.compile(_LEAD + r"i(?:'m| am)? (?:now )?(?:work|working|employed) (?:now )?(?:at|for|by) " + _PHRASE, re.I),
    ),
    (
        "work",
        re.compile(_LEAD + r"i(?:'ve| have)? (?:just )?(?P<change>joined|started (?:working )?at) " + _PHRASE, re.I),
    ),
    (
        "age",
        re.compile(
            _LEAD
            + r"i(?:'m| am| just turned| turned) (?P<value>\d{1,3})(?: years old| yrs old| yo)?(?![\w%$€£.:/-]| \w)",
            re.I,
        ),
    ),
    ("age", re.compile(_LEAD + r"i(?:'m| am| just turned| turned) (?P<value>\d{1,3}) years old", re.I)),
    ("weight", re.compile(_LEAD + r"i (?:now )?weigh (?P<value>\d[^,;:!?\n]{0,20})", re.I)),
    ("drive", re.compile(_LEAD + r"i (?:now )?drive (?P<value>an? [^,;:!?\n]{1,40})", re.I)),
    (
        "name",
        re.compile(
            _LEAD + r"(?:my name is|my name's|you can call me|please call me|call me) (?!(?:later|back|(?:mon|"
            r"tues|wednes|thurs|fri|satur|sun)day|crazy|"
            r"tomorrow|"
            r"when|if|anytime|now|asap|soon|again|tonight|today|on|in|at|by|the|an?|old|up|not|and|so|first|out)\b)"
            r"(?P<value>[^\W\d_][\w'-]{1,20}(?: (?-i:[A-Z])[\w'-]{1,20})?)(?=\s*(?:[.,;!)]|\Z|(?:and|but|from)\b))",
            re.I,
        ),
    ),
)
PREFER_OVER = re.compile(
    _LEAD + r"i (?:now )?(?:prefer|like) (?P<value>[\w'-]+(?: [\w'-]+){0,2}?) (?P<how>over|to|more than|better than) "
    r"(?P<other>[\w'-]+(?: [\w'-]+){0,2}?)(?: now)?[.!]?\Z",
    re.I,
)
PREFER_FOR = re.compile(
    _LEAD
    + r"i (?:now )?prefer (?P<value>[\w'-]+(?: [\w'-]+){0,2}?) (?:for|as) (?P<what>[\w'-]+(?: [\w'-]+){0,3})[.!]?\Z",
    re.I,
)
USE_FOR = re.compile(
    _LEAD + r"(?:we|i)(?:'re| are|'ve| have|'m| am)? (?:now )?(?:use|using|(?P<change>switched to|moved to|migrated "
    r"to)) (?P<value>[\w'.+#-]+"
    r"(?: [\w'.+#-]+){0,2}?) (?:for|as) (?P<what>(?:the |our |my )?[\w'-]+(?: [\w'-]+){0,3}?)(?: now)?[.!]?\Z",
    re.I,
)
_SWITCHED = r"(?:we|i)(?:'ve| have)? (?:just |now |recently |finally |since )?(?:switched|changed)"
_SHORT = r"[\w'.+#-]+(?: [\w'.+#-]+){0,2}?"
SWITCHED = (
    # "we switched our database (from MySQL) to Postgres"; "we switched from MySQL to Postgres for our database"
    re.compile(
        rf"{_LEAD}{_SWITCHED} (?P<owner>my|our|the) {_ATTRIBUTE}(?: over)?(?: from (?P<old>{_SHORT}))?(?: over)? to "
        rf"(?P<value>{_SHORT})(?: now)?[.!]?\Z",
        re.I,
    ),
    re.compile(
        rf"{_LEAD}{_SWITCHED}(?: over)?(?: from (?P<old>{_SHORT}))? to (?P<value>{_SHORT}) (?:for|as) "
        rf"(?P<owner>my|our|the) {_ATTRIBUTE}(?: now)?[.!]?\Z",
        re.I,
    ),
)
SET_TO = re.compile(
    _LEAD + r"(?:please )?set (?:the |our |my )?(?P<attribute>[\w'.-]+(?: [\w'.-]+){0,3}?) to "
    r"(?P<value>[^\s,;!?]{1,60}(?: [^\s,;!?]{1,20}){0,2})[.!]?\Z",
    re.I,
)
CONFIG = re.compile(r"(?P<attribute>[A-Za-z][\w.-]{1,40})\s?[:=]\s?(?P<value>[^\s,;(){}\[\]]{1,60})\Z")
CONFIG_KEY = re.compile(
    r"\w+[_.-]\w+|[A-Z][A-Z0-9]{3,}|(?i:port|host|hostname|version|timeout|region|branch|database|timezone|locale)"
)
STOPPED = re.compile(
    _LEAD + r"i(?:'m| am)? (?:no longer|not) (?P<verb>live|living|work|working) (?:in|at|for) "
    r"(?P<value>[^,;:!?\n]{1,60}?)(?: anymore| any more)?[.!]?\Z"
    r"|"
    + _LEAD
    + r"i don't (?P<verb2>live|work) (?:in|at|for) (?P<value2>[^,;:!?\n]{1,60}?) (?:anymore|any more)[.!]?\Z",
    re.I,
)
IDENTITY = re.compile(
    _LEAD + r"i(?:'m| am|'ve become| became| have become) (?:now )?(?P<no>no longer |not )?(?:an? "
    r")?(?P<value>vegetarian|vegan|pescatarian|single|married|engaged|"
    r"divorced|widowed|retired|unemployed)(?: now| anymore)?(?![\w'-])",
    re.I,
)
SWITCHES = frozenset(("true", "false", "on", "off", "none", "auto", "debug", "info"))
ONE_EACH = frozenset(("work", "age", "weight", "diet", "status", "occupation", "name"))
"""`live` is not among them: who lives in Seattle may live in Ballard. A move has a word of change."""
KINDS = {
    "vegetarian": "diet", "vegan": "diet", "pescatarian": "diet", "single": "status", "married": "status",
    "engaged": "status", "divorced": "status", "widowed": "status", "retired": "occupation", "unemployed": "occupation",
}  # fmt: skip
CHINESE = (
    re.compile(
        r"我的(?P<attribute>[\u4e00-\u9fff]{1,8}?)(?:现在|已经)?(?:是|改成了?|改为)(?P<value>[^，。！？；\s吗呢]{1,20})"
    ),
    re.compile(
        r"我(?:现在)?(?P<attribute>住在|搬到了?|叫|在)(?P<value>[^，。！？；\s吗呢]{1,12}?)(?P<works>工作|上班)?(?:了)?(?=[，。！；\s]|\Z)"
    ),
)
CHINESE_KEYS = {"住在": "live", "搬到": "live", "搬到了": "live", "叫": "name", "在": "work"}
CLAUSE = re.compile(r"\s*;\s*|,? (?:and|but) (?=(?:my|our|i|i'm|we|the) )|, (?=(?:my|our|i|we) )", re.I)
LEAD_ONLY = re.compile(_LEAD + r"\Z", re.I)
"""What CLAUSE cuts off before "my": it says how the rest is meant."""
VALUE_END = re.compile(
    r" (?:and|but|because|so|which|who|since|although|though|that|where|when|while|if|or|as|until|instead|not|"
    r"after)(?!\w).*\Z"
    r"| (?:now|anymore|currently|yesterday|recently|with|for|(?:last|this|next) (?:week|weekend|month|year|"
    r"spring|summer|autumn|fall|winter)|at the moment|these days|btw|thanks|by the way|please|too|rn)\b.*\Z|"
    r"[\s.)\"”*_]+\Z|\s[-–—(].*\Z",
    re.I,
)
ARTICLE = re.compile(r"(?:(?:the|a|an|at|on|in|around|about|called|named)\s+)+", re.I)
ANOTHER = re.compile(r"\b(?:for|of|in|with|at|on) (?:the |an|my |our )?others?\b", re.I)
"""Said after a value: "at 4 pm for the other team" is about something else."""
SPECIFIC = re.compile(r"\d|[A-Z]|[^\x00-\x7f]")
