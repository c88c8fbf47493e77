"""Which sentences say who someone is: the user, those close to them, or the agent as the user wants it.

"I am" begins more passing states than facts about a person, so what follows it decides: a trade, a name, an origin or a
lasting trait is identity, what one is doing or feels is not, and what is neither is left to who can tell (`None`).
Every pattern is bounded.
"""

from __future__ import annotations

import re

from offbook.search.substance import is_asking

_CLAUSE = (
    r"(?:\A|(?<=[,;:(–—])\s?|(?<=- )|\b(?:and|but|because|since|as|that|so|though|although|while|now|then|hi|hello|hey|"
    r"remember|know|note)\s)"
    r"(?:(?:please|by the way|btw|fyi|actually|also|well|yes|no|ok|okay|from now on)\b[ ,:]{0,2})?"
)
_KIN = (
    r"(?:wife|husband|spouse|partner|girlfriend|boyfriend|fianc[ée]e?|son|daughter|kid|child|baby|mother|father|"
    r"mom|mum|dad|parents|brother|sister|twin|grand(?:mother|father|son|daughter|ma|pa)|aunt|uncle|cousin|niece|nephew|"
    r"(?:best )?friend|roommate|flatmate|boss|manager|supervisor|colleague|assistant|doctor|therapist|lawyer|teacher|"
    r"dog|cat|horse|landlord|neighbou?r)"
)
_ATTRIBUTE = (
    r"(?:(?:first |last |full |middle |maiden |user ?|nick)?name|surname|pronouns|birthday|date of birth|age|job|"
    r"profession|occupation|trade|job title|role|employer|company|native language|mother tongue|nationality|"
    r"citizenship|religion|faith|hometown|home town|home address|address|blood type|diet|allerg(?:y|ies)|star sign|"
    r"height|gender)"
)
_LASTING = (
    r"(?:vegetarian|vegan|pescatarian|allergic|(?:lactose |gluten )?intolerant|diabetic|asthmatic|epileptic|"
    r"c(?:o)?eliac|pregnant|married|single|divorced|engaged|widowed|retired|unemployed|self-?employed|freelanc\w{1,4}|"
    r"deaf|blind|colou?r-?blind|disabled|dyslexic|autistic|neurodivergent|gay|lesbian|bisexual|queer|trans(?:gender)?|"
    r"non-?binary|muslim|jewish|christian|catholic|protestant|orthodox|buddhist|hindu|sikh|atheist|religious|"
    r"(?:left|right)-?handed|bilingual|adopted|orphaned|homeless|underage|short-?sighted|near-?sighted|female|male)\b"
)
_NUMBER = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_NAMED = r"(?-i:[\"“']?[A-ZÀ-ÖØ-Þ][\w'’-]*[a-zà-öø-ÿ][\w'’-]*)"
_OF_THE_MOMENT = (
    r"(?:bit|little|tad|lot|few|couple|while|mess|idiot|fool|moron|step|minute|hour|day|week|month|wreck|nervous|"
    r"bundle|second|good|huge|big|great|fan|genius|star|legend|lifesaver|life ?saver|saint|angel|liar|hero|wizard|"
    r"joke|treasure|gem|bot|machine|failure|loser|burden|mix|disaster|victim|prisoner|believer|fraid|total|"
    r"complete|absolute|real|true|disappointment)\b"
)

_I_AM = re.compile(
    _CLAUSE + r"(?P<who>i am|i'm|im|we are|we're)\s(?P<still>still |also |actually |originally |already |currently |"
    r"now |no longer |not )?(?P<what>[^\n]{1,200})",
    re.IGNORECASE,
)
_IS_IDENTITY = re.compile(
    "(?:"
    + "|".join(
        (
            rf"an?\s(?!{_OF_THE_MOMENT})[\w'-]{{2,}}",
            r"the\s(?:(?!one|only|first|last|same|worst|best|next|lucky)[\w'-]{2,}\s){0,3}?(?:owner|founder|"
            r"mother|father|head|lead|ceo|cto|cfo|coo|chair\w{0,6}|boss|captain|parent|\w{3,}(?:er|or|ist|"
            r"ian|ant|ress))\b",
            rf"{_LASTING}|{_NAMED}(?=[\s\"”']*(?:[.,;!)]|\Z|\s(?:and|from|by the way|btw|but|of|{_NAMED})))",
            r"from\s(?!here|there|home|now|the (?:start|beginning))\w",
            r"(?:based|born|raised|living|employed|enrolled)\s(?:in|at|by|near|on)\s",
            r"(?:working)\s(?:as|at|for)\s(?!least|home|now|hours)",
            r"(?:studying|training)\s(?!this|that|it|the)\w",
            r"(?:in charge of|responsible for|in my (?:early |late |mid-?)?\w{4,9}s\b)",
            rf"(?:called|named)\s{_NAMED}|{_NUMBER}(?=\s?(?:years? old|-year-old|y/?o\b|(?:and|[.,!])|\Z))",
            rf"{_NUMBER}\s(?!(?:minutes?|hours?|days?|weeks?|months?|steps?|percent|points?|miles?|km|"
            r"people short)\b)\w+",
        )
    )
    + ")",
    re.IGNORECASE,
)
_IS_PASSING = re.compile(
    "(?:"
    + "|".join(
        (
            r"\w+ing\b|at\b|in\b|on\b|with\b|for\b|to\b|of\b|by\b|about\b|all\b|so\b|very\b|really\b|too\b",
            r"quite\b|pretty\b|just\b|only\b|here\b|there\b|back\b|home\b|out\b|up\b|off\b|away\b|over\b",
            r"almost\b|nearly\b|not\b|never\b|the\b|an?\b|my\b|your\b|like\b|what\b|who\b|how\b|where\b|sure\b",
            r"sorry\b|fine\b|ok(?:ay)?\b|good\b|great\b|well\b|better\b|happy\b|sad\b|glad\b|tired\b|hungry\b",
            r"thirsty\b|cold\b|hot\b|sick\b|ill\b|busy\b|late\b|early\b|ready\b|done\b|afraid\b|aware\b|able\b",
            r"unable\b|curious\b|right\b|wrong\b|angry\b|mad\b|proud\b|lost\b|stuck\b|confused\b|worried\b",
            r"excited\b|interested\b|surprised\b|grateful\b|thankful\b|nervous\b|anxious\b|bored\b|free\b",
            r"full\b|new\b|certain\b|positive\b|open\b|close\b|safe\b|welcome\b|supposed\b|allowed\b",
            r"[a-z]{3,}ed\b|[\d.,]+ ?%",
        )
    )
    + ")",
    re.IGNORECASE,
)
_STATED = re.compile(
    _CLAUSE
    + "(?:"
    + "|".join(
        (
            rf"(?:my|our) (?:{_ATTRIBUTE})(?:'s| is| are)\s(?!not\b|wrong|missing|misspel|killing|\w+ing\b|"
            r"on the|in the|also on|too |so |very |never |a (?:nightmare|mess|joke|secret))\S",
            rf"(?:my|our) (?:[\w'-]{{2,}} ){{0,2}}?{_KIN}s?(?: {_NAMED})?(?:'s| is| are| works?|"
            r" lives?)\s(?:(?:called|named|an?|my|from|at|in|as|for|also)\s(?!bit|little|mess|the (?:phone|way|"
            rf"car|kitchen|shower|bath))|{_LASTING}|{_NUMBER}\b(?!:)|{_NAMED})",
            rf"i have (?:an?|{_NUMBER}|no)\s(?:[\w'-]{{2,}} ){{0,2}}?(?:{_KIN}s?|kids|children|siblings|brothers|"
            r"sisters|twins|allerg(?:y|ies)|disability|chronic \w+)\b",
            r"i have (?:type \w+ )?(?:diabetes|asthma|adhd|add|autism|epilepsy|dyslexia|c(?:o)?eliac|cancer|ms|"
            r"tinnitus|migraines)\b",
            r"i work (?:full[ -]time |part[ -]time )?(?:as|at|for|in)\s(?!least|it\b|that\b|this\b|hours|"
            r"a while|now|the (?:evening|morning|afternoon|garden)|peace)\w",
            r"i (?:live|was born|grew up|was raised|come) (?:in|near|on|from|alone|with|at)\b(?! (?:the moment|"
            r"fear|peace|hope))",
            r"i (?:speak|teach|study|run an?|own an?|manage an?|lead an?)\s(?!up\b|to\b|with\b|about\b|of\b|"
            r"it\b|that\b|this\b|errand|bath|test|script)\w",
            r"i (?:don't|do not|never) (?:eat|drink) (?!that|this|it\b|much|enough|there|out\b|before|after|now|"
            r"today|any more)\w",
            r"(?:call me|people call me|they call me|everyone calls me|i go by|i'm known as|"
            r"i am known as) (?!back|later|when|if|at\b|on\b|in\b|tomorrow|again|crazy|old|an?\b|now\b|up\b|"
            rf"what|after|before|once|today|tonight|the\b)(?:{_NAMED}|[\w'-]+[.!]?\Z)",
        )
    )
    + ")",
    re.IGNORECASE,
)
_AGENT = re.compile(
    _CLAUSE
    + "(?:"
    + "|".join(
        (
            r"(?:you are|you're|you will be|you'll be|you shall be)\s(?:now |called |named )?(?:(?:my|"
            rf"our)\s(?!hero|favou?rite|best|last|only|first|saviou?r|{_OF_THE_MOMENT})\w|(?:called|named)\s|"
            r"an?\s(?:[\w'-]{2,} ){0,3}?(?:assistant|agent|expert|tutor|coach|teacher|planner|reviewer|"
            r"editor|engineer|developer|translator|advisor|adviser|consultant|specialist|analyst|writer|partner|"
            r"bot|companion|librarian|researcher|guide)\b(?![\s!]*!))",
            rf"your (?:name|role) (?:is|shall be|will be)(?! not\b)\s\w|i(?:'ll| will)? call you {_NAMED}",
        )
    )
    + ")",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    "|".join(
        (
            r"我(?:的名字)?叫(?!你|他|她|它|人|车|了|外卖)\S|我的名字是",
            r"我是(?:一[名个位]|[^，。！？\s]{0,8}(?:师|生|员|人|家|者|工|长|护士|经理|老板|妈妈|爸爸|"
            r"博士)(?=[，。！,.!\s]|\Z))",
            r"我(?:住在|来自|今年\d|对[^，。]{1,8}过敏|吃素)|你是我的|你的名字是",
            r"(?:私|僕|俺)(?:の名前)?は[^。！？\n]{1,20}(?:です|といいます|と申します)|と申します",
            r"\b(?:me llamo|mi nombre es|soy (?:un[ao]? |de |vegetarian|vegan|al[ée]rgic|"
            r"[a-zñáéíóú]{3,}(?:ero|era|or|ora|ista|ente|ic[oa])\b)|trabajo (?:como|de|en) |vivo en |"
            r"soy [a-z]+ de profesi[óo]n|eres mi |mi (?:esposa|mujer|marido|hij[oa]) (?:es|se llama) )",
            r"\b(?:ich hei(?:ß|ss)e |mein name ist |ich bin (?:ein(?:e)? (?!bisschen|wenig)|vegetarier|veganer|"
            r"allergisch|aus )|ich bin [\w .-]{3,40} von beruf|ich bin [\wäöüß]{4,}(?:er|erin|in|ist|istin|"
            r"arzt|ärztin)\b(?=[\s.,!]*(?:\Z|in |aus |und |von ))|ich arbeite (?:als|bei) |ich (?:wohne|"
            r"lebe) in |meine (?:frau|tochter|mutter) hei(?:ß|ss)t |mein (?:mann|sohn|vater) hei(?:ß|ss)t |"
            r"du bist (?:mein|meine) |nenn mich )",
            r"\b(?:je m'appelle |mon nom est |je suis (?:un |une |all[ée]rgique|v[ée]g[ée]tarien|v[ée]gan|"
            r"[\wéèê]{3,}(?:eur|euse|ien|ienne|ier|i[èe]re|iste|ant|ante)\b)|je travaille (?:comme|chez|"
            r"en tant) |j'habite (?:à|en|au|dans) |ma femme s'appelle |mon mari s'appelle |tu es mon |"
            r"appelle-moi )",
        )
    ),
    re.IGNORECASE,
)
_UNREAL = re.compile(
    "|".join(
        (
            r"\A(?:if|unless|whether|suppose|imagine|pretend|assume|what if|as if|let's say|say|wish)\b",
            r"\b(?:translate|rephrase|paraphrase|proofread|spell|write|lyrics|the (?:sentence|phrase|words)|"
            r"wish|pretend|as if|imagine|suppose|assum(?:e|ing))\b",
        )
    ),
    re.IGNORECASE,
)


def identity_in(sentence: str) -> bool | None:
    """Whether a sentence says who someone is; None where "I am" says what may be either."""
    said = _told(sentence)
    if not said:
        return False
    if not said.isascii() and _ELSEWHERE.search(said):
        return True
    if _UNREAL.search(said):
        return False
    if _STATED.search(said) or _AGENT.search(said) or _ELSEWHERE.search(said):
        return True
    verdict: bool | None = False
    for found in _I_AM.finditer(said):
        one = _complement(found["what"], (found["still"] or "").strip().lower())
        if one:
            return True
        verdict = None if one is None else verdict
    return verdict


def _told(sentence: str) -> str:
    """What a sentence states. "I'm Nina, can you help?" states something before it asks."""
    if not is_asking(sentence):
        return sentence
    head, _, _ = sentence.rpartition(",")
    return "" if not head or is_asking(head) else head


def _complement(what: str, adverb: str) -> bool | None:
    if _IS_IDENTITY.match(what):
        # "I'm not a robot" and "I'm not a morning person" look alike.
        return None if adverb == "not" else True
    return False if adverb == "not" or _IS_PASSING.match(what) else None
