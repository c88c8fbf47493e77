"""The English that telegraph style knows: words it leaves out, words that say little. Other languages stay whole."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DROPPED = _words(
    """
    a an the am is are was were be been being have has had having do does did doing shall
    i i'm im i've ive i'd i'll me my myself yourself it it's its that that's thats this these those there there's
    we us our we're we've we'll you're youre you've you'd you'll he's she's they're they've who's what's here's let's
    really very so just quite pretty rather actually basically literally totally absolutely definitely certainly
    obviously honestly simply truly super kinda sorta gonna gotta also then well even such of some any as which
    oh ah um uh hmm hm wow whoa yay hey hi hello yo yeah yep yup yes ok okay please thanks thank bye goodbye welcome
    haha hah lol omg aww aw cheers sure cool awesome congrats congratulations sorry anyway anyways lets
    """
)
"""Left out wherever they stand. Nothing that negates, compares, bounds, asks or says who and whether is among them."""

GREETINGS = _words(
    "hey hi hello thanks thank wow yeah yep yes ok okay bye congrats congratulations sure cool awesome sorry aww oh "
    "you absolutely definitely totally welcome"
)
"""A name right after one of these is only called, not spoken of."""

SMALL = _words("to for in on at into onto about up out and or with by from")
"""Left out before a plain word, kept before a number or a name: `moved to Berlin`, `from 3 to 5`, `at 10:30`."""
LINKING = _words("and or with by from")
"""Of the small words, those kept between any two: who with whom, this or that."""

OPENERS = _words("because although though while whereas unless since if when after before until")
SILENT_OPENERS = frozenset(("so", "and", "but"))
"""A clause begins here as well; the word says nothing once the clause before is gone."""
SUBJECTS = _words(
    "i i'm i've i'd i'll you you're he she it it's we we're we've they they're that this there he's she's my"
)
"""After `and`, the sign that a clause begins rather than a list goes on."""

_HEDGES = """
    i think|i guess|i believe|i mean|i bet|i suppose|you know|you see|kind of|sort of|a lot|lots of|of course|by the|
    the way|as well|at all|in fact|have been|has been|had been|so much|very much|good luck|no problem|no worries|
    glad to|great to|nice to|good to|a bit|let me
"""
HEDGES = frozenset(hedge.strip() for hedge in _HEDGES.split("|"))
"""Two words of which nothing is kept."""

GENERIC = _words(
    """
    amazing awesome great good nice cool wonderful fantastic incredible lovely beautiful happy glad excited exciting
    fun interesting perfect excellent special important thing things something anything everything someone anyone
    everyone way lot lots bit kind sort stuff much many more most other another same own able enough already yet soon
    get gets got getting go goes going went gone come comes came make makes made making take takes took taking give
    gives gave see sees saw seen look looks looked looking know knows knew think thinks thought feel feels felt feeling
    say says said tell told talk talking want wants wanted need needs needed like likes liked love loves loved let
    try tried trying keep keeps kept help helps helped hope wish sounds sound seem seems wait share shares sharing
    shared guess mean right now today time times day days always ever never again back around over down off away here
    there where when what how why who than if or not no don't can can't won't while because but up out about with from
    by into at on in for to and one still since before after all both few new old big little long last next first maybe
    must should may might every each less least later together inspiring could would will you your too
    him her his their them they he she hers theirs ours pic photo picture image
    agree hear heard proud lucky grateful thankful appreciate appreciated worth huge tough true self world life words
    remind reminds part awe stoked pumped super sweet cute gorgeous matter matters happen happened happens truly
    completely exactly understand understood clear sense point course idea ideas chance moment moments step works
    """
)
"""Words nobody will ask for later: they count little, whatever is said."""

ABBREVIATIONS = _words("mr. mrs. ms. dr. prof. st. vs. e.g. i.e. etc. cf. no. approx. inc. ltd. jr. sr. fig. p. pp.")
"""Their full stop ends no sentence."""

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
TIME_WORDS = _words(
    "monday tuesday wednesday thursday friday saturday sunday week weeks weekend month months year years yesterday "
    "tomorrow tonight morning evening hour hours minutes"
)
NUMBER_WORDS = _words(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty fifty hundred thousand million "
    "once twice half dozen second third fourth"
)
DECIDING = _words(
    "decided decide decision agreed chose chosen picked approved rejected settled confirmed deadline todo instead "
    "wrong correction corrected fixed broke broken failed fails failure error exception renamed switched cancelled "
    "canceled postponed promised"
)
"""Words of decisions, corrections and results: the clause that holds one counts more."""
REQUESTS = ("can you", "could you", "would you", "will you", "please", "how do i", "how can i", "what if we")
"""How questions begin that ask for something to be done: they count as statements do."""
