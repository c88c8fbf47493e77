"""The words by which lasting facts are told from passing remarks. Data for `facts`.

Only an attribute of which a thing has one at a time can be replaced by being stated anew: two birthdays contradict each
other, two friends do not. Everything else needs a word of change ("now", "no longer") before it replaces anything.
"""

from __future__ import annotations

import re

from offbook.retrieval.stems import stem


def _stems(listed: str) -> frozenset[str]:
    return frozenset(stem(word) for word in listed.split())


ONE_AT_A_TIME = _stems(
    "birthday birthdate age address phone email timezone salary deadline port hostname username nickname surname "
    "hometown nationality height weight version editor ide browser os anniversary postcode zipcode passport pronouns "
    "gate seat room manager boss landlord employer database branch region currency locale shift"
)
"""Last word of an attribute. `name` counts only for the speaker's own (see `facts`)."""

OF_A_PERSON = _stems(
    "birthday birthdate age address phone email salary name nickname surname hometown nationality height weight "
    "anniversary postcode zipcode passport pronouns employer boss manager landlord"
)
"""What "delete my …" asks to forget. Who deletes a branch, a file or a database wants that done."""

OF_THE_MOMENT = _stems(
    "day morning evening night week weekend month year opinion thought question problem issue thing point idea "
    "feeling "
    "mood concern worry guess answer hope dream advice reason experience life family time part memory moment "
    "side way "
    "hand head heart mind back eye eyes body understanding impression sense fear suggestion preference challenge "
    "struggle focus priority approach goal aim intention purpose motivation take choice rule fault fact truth "
    "good bad "
    "best worst biggest main first second third next last other another most one two rest key trick secret catch "
    "difference result outcome conclusion story response reaction message text kid kids work job schedule situation "
    "people place stuff step list topic word sentence paragraph line thank view vibe pick favorite"
)
"""Attributes of which people speak in passing, or several of which can be true."""

_COUNTRIES_TEXT = (
    "portugal spain franc germany itali austria switzerland belgium netherland holland denmark sweden norwai "
    "norway finland iceland ireland england scotland wale britain uk poland czechia hungari romania bulgaria "
    "greec turkei turkey russia ukrain croatia serbia slovenia slovakia estonia latvia lithuania usa us america "
    "canada mexico brazil argentina chile peru colombia china japan korea taiwan india pakistan bangladesh "
    "thailand vietnam malaysia singapor indonesia philippin australia zealand egypt morocco tunisia nigeria kenya "
    "ghana ethiopia africa europ asia israel jordan lebanon iran iraq texa california florida oregon washington "
    "nevada arizona colorado bavaria catalonia ontario "
)
COUNTRIES = frozenset(_COUNTRIES_TEXT.split())
"""Stems. Who lives in one of them may live in a town as well: neither replaces the other."""

CHANGE = re.compile(
    r"\b(?:now|nowadays|no\s+longer|anymore|any\s+more|actually|changed?|moved|switched|updated?|renamed|rescheduled|"
    r"postponed|instead|new|from\s+now\s+on|correction|as\s+of|since\s+yesterday)\b|现在|改成|改为|已经",
    re.IGNORECASE,
)
UNREAL = re.compile(
    r"\b(?:if|unless|suppose|supposing|imagine|pretend|assuming|assume|let's\s+say|say\s+that|hypothetically|"
    r"maybe|perhaps|might|would|could|wish|hope|hoping|guess|think|thought|probably|possibly|used\s+to|"
    r"when\s+i\s+was|as\s+if|wonder|"
    r"whether|should|example|e\.g|dreamt|dreamed|joking|kidding)\b|如果|假如|要是|可能|也许|想",
    re.IGNORECASE,
)
NO_VALUE = re.compile(
    r"(?:not?|never|n't|so|very|really|pretty|too|quite|super|kind|sort|going|getting|doing|being|having|still|"
    r"always|also|already|finally|almost|just|only|about|like|that|what|how|when|where|why|who|which|whether|if|"
    r"because|to|the\s+same|this|these|those|it|its|he|she|they|we|i|you|my|your|all|both|everything|nothing|"
    r"something|anything|one\s+of|"
    r"part|more|less|better|worse|best|great|good|nice|fine|ok|okay|bad|awesome|amazing|fun|happy|sad|hard|easy|"
    r"well|sick|tired|busy|ready|done|here|there|up|down|out|off|over|under|due\s+to|such|as|then|than|by|for|"
    r"with|from|of|"
    r"important|unknown|key|clear|far|near|often|whenever|another|half|mostly|unique|incomplete|quiet|missing|"
    r"broken|wrong|right|correct|unclear|tbd|open|closed|full|empty|coming|soon)(?![\w'])",
    re.IGNORECASE,
)
"""What a value cannot begin with: judgements, states, beginnings of a clause."""
STATE = re.compile(r"[a-z]{3,}(?:ing|ed|ly|ful|ous|ive|able|ible|less)(?![\w'-])")
"""What a thing does or is like: no value except of a favourite ("my favourite hobby is running")."""
