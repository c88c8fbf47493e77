"""Where a text gives orders to a model, in the languages people try it in.

Not a judge of intentions: "what is a system prompt?" is found as well. It says where a reader should see that the words
are quoted. Every pattern is bounded: reading takes time in proportion to the text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from offbook.model.lazy_pattern import lazy_pattern

_ARABIC_VOWELS = (0x640, *range(0x64B, 0x660), 0x670)
_DROPPED = dict.fromkeys((*range(0x300, 0x370), *_ARABIC_VOWELS))
# Letters that look Latin. Only for the second look: Russian needs its own.
_LOOKALIKES = str.maketrans("авсеһіјкмнорѕтухаοερικνυτ", "abcehijkmhopstyxaoepikvut")


@lru_cache(maxsize=8192)
def _plain(character: str) -> str:
    """A character without case, width, accents and vowel signs; nothing, where it is one of these."""
    wide = unicodedata.normalize("NFKC", character).casefold()
    base = unicodedata.normalize("NFKD", wide).translate(_DROPPED)
    return base if base < "\u1100" else wide  # beyond that they are syllables and ideographs, which stay whole


def _compiled(*phrases: str, start: str = "") -> re.Pattern[str]:
    """A blank stands for anything but letters, `~` for up to four words more; letters are as `_plain` has them.

    An underscore is no letter here: it may be emphasis.
    """
    spelt = "|".join(phrases).replace("~", r"(?:[\w'’]{1,20}[\W_]{1,4}){0,4}")
    spelt = spelt.replace(" ?", r"[\W_]{0,4}").replace(" ", r"[\W_]{1,4}").replace(r"\b", r"(?![^\W_])")
    return lazy_pattern(f"{start}(?:{''.join(one if one.isascii() else _plain(one) for one in spelt)})")


_NOT = r"(?<!not\x20)(?<!n't\x20)(?<!n’t\x20)(?<!never\x20)(?<!не\x20)"
"""Whoever writes "don't forget the rules" wants them kept."""
_RULES = (
    r"(?:instructions?|prompts?|rules?|guidelines?|directions?|directives?|commands?|orders?|messages?|context"
    r"|conversations?|constraints?|restrictions?|limitations?|polic(?:y|ies)|programming|training|safeguards?|filters?"
    r"|guardrails?|safety)\b"
)
_YOU = (
    r"(?:you (?:(?:must|should|will|shall|can|now|have to|need to) )?|(?:please|must|now) "
    r"|(?:^|(?<=[.!?:;,‘'\"])|(?<=[.!?:;,‘'\"]\x20)))"
)

_ENGLISH = (
    rf"{_NOT}(?:ignor(?:e|ing)|disregard(?:ing)?|forget|override|bypass|overrule|circumvent|violate) "
    rf"(?:all|any|every|your|the|these|those|previous|prior|earlier|above|preceding|system|safety|its|my) ~{_RULES}",
    r"(?:ignore|disregard|forget) (?:about )?(?:all|everything|anything|what(?:ever)?|the|of|that|this)"
    r"(?: (?:the|that|of|is|was|text|you|were|have|been)){0,6} "
    r"(?:above|before|previous|earlier|prior|preceding|told|said|know|learned)\b",
    rf"{_NOT}forget (?:about )?everything\b",
    r"(?:do not|don t|dont|never|stop|no longer) "
    r"(?:follow(?:ing)?|obey(?:ing)?|listen(?:ing)? to|adhere to|comply with) "
    rf"(?:all|any|your|the|these|those|previous|prior|system) ~{_RULES}",
    r"you (?:are|re) (?:now|no longer) (?:an?|the|my|in|going|acting|free|operating|bound|dan|jailbroken|unrestricted"
    r"|required|restricted|allowed|\w{1,12}gpt)\b",
    r"(?:new|updated|revised|real|actual|additional|hidden|secret) (?:(?:system|developer) )?instructions? ?:",
    r"(?:(?:your|the) )?(?:system|developer|hidden) prompts?\b|your (?:initial|original) prompts?\b",
    r"(?:do not|don t|dont|never|without) (?:tell|inform|mention|reveal|show|alert|notify|warn|let)(?:ing)? "
    r"(?:(?:any of|about|this|that|it|these|anything|to) ){0,3}(?:(?:the|your) )?(?:users?|humans?|operator|owner)\b",
    r"(?:reveal|print|show|repeat|output|leak|display|expose|disclose|recite|dump|tell|give) (?:(?:me|us|all|of) ){0,3}"
    r"your (?:\w{1,16} ){0,3}(?:prompts?|instructions?|rules|guidelines|api keys?|passwords?|secrets?)\b",
    rf"{_YOU}(?:act as (?:if|though|an?|my|the|dan)|role ?play as|play the role of|take on the (?:role|persona) of)\b",
    r"(?:pretend|imagine) (?:to be an?|you are|you re|that you are|you have no)\b",
    r"from (?:now|this (?:point|moment)|here) (?:on|onwards?|forward)(?: on)? "
    r"(?:you|always|only|never|answer|respond|reply|ignore|your)\b"
    r"|(?:henceforth|going forward) you (?:must|will|shall)\b",
    r"override (?:mode|code|protocol|authori[sz]ation)\b|(?:system|admin|safety|security|instruction) override\b",
    r"do anything now\b|jailbr(?:eak|oken)\b|dan mode\b|enter(?:ing)? (?:developer|god|sudo|unrestricted) mode\b",
    r"(?:developer|god|debug|sudo|unrestricted|admin) mode (?:(?:is|now) ){0,2}"
    r"(?:enabled|on|activated|active|unlocked)\b",
    r"(?:you have no|(?:act|answer|respond|reply|speak) without|free (?:from|of)) (?:(?:any|all) )?"
    r"(?:(?:ethical|moral|safety|content) )?(?:restrictions|filters|guardrails|censorship|safeguards|guidelines)\b",
    r"you (?:must|will|shall|have to) (?:(?:now|always|only|immediately) ){0,2}(?:obey|comply|follow)\b",
    r"(?:follow|execute|run|obey) (?:these|my|those|the following|the new) (?:\w{1,12} )?"
    r"(?:instructions?|orders?|commands?|directives?)\b",
    r"end of (?:the )?(?:(?:system|previous) )?(?:prompt|instructions?|context|conversation)\b",
    r"(?:important|attention|note) (?:(?:to|for) )?(?:(?:the|any|all) )?(?:ai|llm|language model|assistant|agent)s?\b",
    r"(?:the|this|any) (?:ai|llm|assistant|language model|agent) (?:reading|processing|that reads)\b",
)
_SPANISH_AND_PORTUGUESE = (
    r"(?:ignor[aeo]|olvid[ae]|omit[ae]|descart[ae]|desconsider[ae]|esquec[ae]|desobede[cz]\w)\w{0,3} "
    r"~(?:instruc\w{2,7}|indicaciones|ordens|ordenes|reglas|regras|anterior(?:es|mente)?|acima|arriba|previ[ao]s"
    r"|diretrizes|directrices|restric\w{3,6})\b|(?:olvida|olvide|esqueca|esquece|ignora|ignore) (?:todo|tudo)\b",
    r"(?:ahora eres|eres ahora|agora voce e|voce agora e|tu agora es)\b",
    r"(?:a partir de (?:ahora|agora)|de ahora en adelante|de agora em diante) "
    r"(?:tu|usted|voce|eres|seras|debes|tienes|vas|responde|actua|ignora|deve|sera|es)\b",
    r"(?:nuevas instrucciones|novas instrucoes) ?:"
    r"|(?:prompt|instrucciones|instrucoes) (?:del?|do) (?:el )?sistema\b",
    r"(?:no|nao|nunca) (?:(?:le|se|lo|o) ){0,2}(?:digas?|informes?|reveles?|cuentes?|menciones?|conte|mostre|fale) "
    r"~(?:usuario|utilizador)\b",
    r"(?:revela|revele|muestra(?:me)?|mostre|mostra|imprime|imprima|repite|repita|exiba) "
    r"(?:tus?|sus?|seus?|suas?|teu|tua) ~(?:prompt|instrucciones|instrucoes|reglas|regras)\b",
    r"(?:actua|actue|comportate|aja|atue) como (?:si|se|uma?|una?|dan)\b|(?:finge|finja) (?:ser|que eres|que e)\b",
)
_FRENCH = (
    r"(?:ignor|oubli|neglig|contourn)(?:e|ez|er) "
    r"~(?:instructions?|consignes?|directives?|regles?|dessus|precedente?s?)\b|oubli(?:e|ez) tout\b",
    r"ne (?:tiens|tenez) (?:pas|plus) compte (?:des?|du) ~(?:instructions?|consignes?|dessus)\b",
    r"(?:tu es|vous etes) (?:maintenant|desormais) (?:une?|le|la|en|dan)\b"
    r"|(?:desormais|a partir de maintenant) (?:tu|vous)\b|nouvelles (?:instructions|consignes) ?:"
    r"|(?:prompt|invite|instructions) (?:(?:du|de) )?systeme\b",
    r"ne (?:(?:le|la|les) )?(?:dis|dites|revele|revelez|mentionne|mentionnez|montre|montrez) (?:rien|pas|jamais) "
    r"~(?:utilisateur|usager)\b",
    r"(?:revele|montre|affiche|repete)z? (?:moi )?(?:ton|votre|tes|vos) ~(?:prompt|instructions|consignes|regles)\b",
    r"(?:agis|agissez|comporte toi|comportez vous) (?:comme|en tant)\b|fai(?:s|tes) semblant d\b",
)
_GERMAN = (
    r"(?:ignorier(?:e|en|t)?|vergiss|vergesst|vergessen sie|missachten?|uberschreiben?|umgehen?|verwirf) "
    r"~(?:anweisung(?:en)?|anordnung(?:en)?|instruktion(?:en)?|regeln?|befehle?|vorgaben?|(?:vorher|bisher|ob)ige[nrs]?)\b"
    r"|(?:vergiss|ignoriere) alles\b",
    r"(?:du bist|sie sind) (?:jetzt|nun|ab jetzt|ab sofort) (?:eine?|kein|der|die|das|im|frei|dan)\b",
    r"(?:ab (?:jetzt|sofort)|von nun an) (?:bist|musst|sollst|wirst|antwortest) du\b"
    r"|neue (?:anweisung(?:en)?|instruktionen) ?:|system ?(?:prompt|anweisung(?:en)?)\b",
    r"(?:sage?|verrate?|erzahle?|teile?|zeige?) (?:(?:es|das|dies|davon) )?(?:dem|der|den) "
    r"(?:benutzer|nutzer|anwender|user)(?:in|n)? (?:\w{1,10} )?nichts?\b",
    r"(?:verrate|zeige?|nenne|gib|wiederhole|enthulle) (?:mir )?(?:deine[n]?|ihre[n]?) "
    r"~(?:prompt|systemprompt|anweisungen|instruktionen|regeln)\b",
    r"(?:verhalte? dich wie|tu so als|gib dich als|agiere als|handle als)\b",
)
_RUSSIAN = (
    rf"{_NOT}(?:(?:про)?игнорир\w{{2,4}}|забудь(?:те)?|не обращай(?:те)? внимания на|отмени(?:те)?|не следуй(?:те)?) "
    r"~(?:инструкци\w{1,3}|указани\w{1,3}|команд\w{0,3}|правил\w{0,3}|предыдущ\w{2,3}|выше|ограничени\w{1,3})\b",
    rf"{_NOT}забудь(?:те)? (?:обо? )?вс[её]м?\b|(?:ты|вы) теперь\b|теперь (?:ты|вы) (?:будешь|должен"
    rf"|должны|играешь)\b",
    r"(?:отныне|с этого момента) (?:ты|вы)\b|новые (?:инструкции|указания) ?:",
    r"системн\w{2,3} (?:промпт\w{0,2}|подсказк\w{1,2}|инструкци\w{1,2})\b|режим (?:разработчика|бога)\b",
    r"не (?:говори|сообщай|рассказывай|показывай|раскрывай)(?:те)? ~пользовател\w{1,3}\b",
    r"(?:раскрой|покажи|выведи|повтори)(?:те)? (?:мне )?(?:сво[ий]|тво[ий]|ваши?) ~(?:промпт|инструкции"
    r"|правила|подсказку)\b",
    r"(?:веди себя|действуй) как\b|притворись\b|представь что ты\b",
)
# They all begin with a word: to look at the beginnings of words only is far quicker.
_BY_WORDS = _compiled(
    *_ENGLISH, *_SPANISH_AND_PORTUGUESE, *_FRENCH, *_GERMAN, *_RUSSIAN, start=r"(?<![^\W_])(?=[^\W_])"
)

_CHINESE = (
    r"(?:忽略|无视|無視|忽視|忽视|忘记|忘記|忘掉|不要理会|不要遵守|绕过|繞過|覆盖)[^。！？]{0,6}"
    r"(?:之前|以前|以上|上述|上面|先前|前面|所有|一切|你的|全部|任何|系统|系統)[^。！？]{0,10}"
    r"(?:指令|指示|提示|规则|規則|命令|内容|內容|对话|對話|限制)",
    r"(?:忘记|忘記|忘掉|忽略)(?:一切|所有|全部|以上|之前的)|(?:你现在是|你現在是)|[从從]现?現?在(?:起|开始"
    r"|開始)[，,]?你",
    r"系统提示词?|系統提示詞?|新的?(?:指令|指示)[:：]|(?:请|請|你)[来來]?扮演|假[装裝](?:你是|成)",
    r"(?:不要|别|別|勿)(?:告诉|告訴|通知)(?:用户|用戶|使用者)|越狱模式|越獄模式|(?:进入|開啟|开启)(?:开发者"
    r"|開發者)模式",
    r"(?:透露|泄露|输出|輸出|显示|顯示|告诉我|告訴我|打印|重复|重複)你的[^。！？]{0,8}(?:提示|指令|规则|規則)",
)
_JAPANESE = (
    r"(?:以前|これまで|今まで|上記|前述|すべて|全て|先ほど|前)の?[^。！？]{0,12}(?:指示|命令|ルール|プロンプト"
    r"|制限|内容|会話)"
    r"[^。！？]{0,8}(?:無視|忘れ|破棄|従わない)",
    r"(?:指示|命令|ルール|プロンプト|制限)[^。！？]{0,8}(?:無視し|忘れて|破棄し)",
    r"(?:あなた|君|お前)は(?:今から|これから|今や)|(?:今から|これから)は?[、,]?(?:あなた|君)は|システム・?プロンプト",
    r"新しい(?:指示|命令)[:：]|ユーザーには?(?:言わない|伝えない|教えない|知らせない|話さない)|脱獄モード",
    r"として(?:振る舞って|ふるまって|行動して)|のふりをして(?:ください|くれ)",
    r"(?:プロンプト|指示)(?:の内容)?を[^。！？]{0,6}(?:教えて|見せて|出力して|表示して|公開して|明かして)",
)
_KOREAN = (
    r"(?:이전|앞선|위의|기존|지금까지|모든)[^.。!?]{0,12}(?:지시|명령|규칙|프롬프트|내용|대화)[^.。!?]{0,8}"
    r"(?:무시|잊어|따르지)",
    r"(?:지시|명령|규칙|프롬프트)[^.。!?]{0,8}(?:무시|잊어)",
    r"(?:너는|당신은|넌) (?:이제부터|지금부터|이제)|(?:이제|지금)부터 (?:너는|당신은|넌)|시스템 ?프롬프트",
    r"새로운 (?:지시|명령)[^.]{0,4}:|사용자에게 (?:말하지|알리지|알려주지)|처럼 행동해|탈옥 모드",
    r"(?:프롬프트|지시)(?:를|을|사항을) (?:\w{1,8} )?(?:공개|출력|보여|알려)",
)
_ARABIC = (
    r"(?:تجاهل|تجاهلي|انس|انسى|أهمل|لا تتبع|تخط) "
    r"~(?:ال)?(?:تعليمات|أوامر|توجيهات|قواعد|سابقة|أعلاه|سبق)\w{0,2}",
    r"أنت الآن|(?:من الآن فصاعدا|ابتداء من الآن)|(?:تعليمات|أوامر) جديدة ?:|(?:موجه|تعليمات) (?:ال)?نظام",
    r"لا تخبر(?:ي)? (?:ال)?مستخدم|لا تقل لل?مستخدم|(?:تصرف|تظاهر) (?:ك|وك|ب)أن",
    r"(?:اكشف|أظهر|اعرض|اطبع) ~(?:تعليماتك|موجهك|أوامرك|قواعدك)",
)
_ANYWHERE = _compiled(*_CHINESE, *_JAPANESE, *_KOREAN, *_ARABIC)


def orders_in(text: str) -> list[tuple[int, int]]:
    """Where each order begins and ends, in order and apart from each other."""
    if text.isascii():
        return [found.span() for found in _BY_WORDS.finditer(text.lower())]
    seen, places = _as_seen(text)
    spans = [found.span() for pattern in (_BY_WORDS, _ANYWHERE) for found in pattern.finditer(seen)]
    alike = seen.translate(_LOOKALIKES)
    if alike != seen:
        spans += [found.span() for found in _BY_WORDS.finditer(alike)]
    return _merged([(places[start], places[end - 1] + 1) for start, end in spans])


def _as_seen(text: str) -> tuple[str, list[int]]:
    """The text as a lenient reader sees it, and where in the text each of its characters stands."""
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        plain = _plain(character)
        letters.append(plain)
        places.extend([place] * len(plain))
    return "".join(letters), places


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    apart: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart
