"""Words that many messages share and none is about, in the languages people write in."""

from __future__ import annotations

import re

from offbook.search.stems import stem
from offbook.search.words import STOP_WORDS

_VERBS_TEXT = (
    "accept achieve add advise afford agree allow answer anticipate appear apply appreciate approach arrange arrive "
    "ask assist assume attempt avoid base become begin believe belong bother break bring build call cancel care "
    "carry catch cause change check choose clarify close combine come compare complain complete confirm confuse "
    "connect consider consist contain continue contribute convert copy correct count create cut deal decide define "
    "delete demonstrate depend describe deserve desire determine develop differ disagree discover discuss display "
    "drop edit elaborate enable encourage end enjoy ensure enter establish evaluate examine exist expand expect "
    "explain explore express fail fall feel figure fill find finish fit fix focus follow forget form gather generate "
    "get give go grow guess handle happen hate hear help hold hope identify imagine implement imply improve include "
    "increase indicate influence inform insert install intend introduce involve join jump keep know lack last laugh "
    "lead learn leave let like limit listen live look lose love maintain make manage matter mean mention mind miss "
    "modify move need notice obtain occur offer open operate organize ought paste perform pick place plan please "
    "point prefer prepare present prevent proceed produce promise propose prove provide pull push put raise reach "
    "react read realize receive recognize recommend reduce refer refuse regard relate remain remember remind remove "
    "repeat replace reply represent request require resolve respond result return reveal review rewrite run save say "
    "see seem select send separate serve set share show sit solve sound speak spend stand start state stay stop "
    "struggle submit succeed suggest suit summarize support suppose switch take talk tell tend thank think throw "
    "touch translate treat trust try turn understand update use verify view visit wait walk want warn waste watch "
    "wish wonder work worry write"
)
_NOUNS_TEXT = (
    "advice afternoon amount anybody attention background beginning bit bunch case chance chat choice conversation "
    "correction couple course day detail difference direction dozen effect effort ending evening everybody example "
    "fact folk future guy half hand hour hundred idea info information instance issue item kind level line list lot "
    "manner message middle million minute moment month morning name night nobody number one opportunity option "
    "order part past people period person piece possibility problem process purpose question reason respect "
    "response sense situation somebody sort stage step stuff summary task term thing thought thousand time tip "
    "title today tomorrow tonight top topic total truth type variety version way week weekend while word world year "
    "yesterday"
)
_OTHERS_TEXT = (
    "able above absolutely across actual additional afraid ahead alike almost alone along already alright always am "
    "amazing among another anyhow anymore anyway anywhere apart appropriate april around asap aside august available "
    "aware away awesome awful bad basic behind besides best better beyond big bigger biggest both brief bright btw "
    "bye careful central certain cheap cheers clean clear common complex concrete convenient cool couldn crazy "
    "curious current dear december deep despite didn different difficult direct doesn due early easy eight eighteen "
    "eighty eleven else elsewhere empty enough entire equal especially essential eta etc even eventually everywhere "
    "exact excellent excited exciting extra extreme fair familiar fantastic far fast favorite favourite february few "
    "fifteen fifty final fine first five forever former forty forward four fourteen free frequent fresh friday full "
    "fully funny further fyi general glad gonna good goodbye gotta great greatest greetings haha half happy hard "
    "hardly hasn haven heavy hello helpful hey hi high higher highest honest horrible huge hundreds idk imho imo "
    "important impossible incredible inside instead interested interesting isn itself january july june kinda large "
    "larger largest late lately later latest least left less likely literally little local lol long longer longest "
    "loud low lower lowest lucky main major many march may maybe mean meanwhile mere minor modern monday multiple "
    "native natural nb nearby nearly neat necessary neither never new newer newest next nice nine nineteen ninety "
    "noon normal november nowhere obvious october odd often ok okay old older oldest omg only opposite optional "
    "ordinary original otherwise outside overall particular per perfect perhaps pleasant please pls plus plz pm poor "
    "popular positive possible potential practical precise pretty previous primary private probable proper ps public "
    "quick quiet quite random rare rather ready real realistic reasonable recent regardless regards regular related "
    "relevant right rough sad safe same saturday scary second separate september serious seven seventeen seventy "
    "several sharp short shorter shouldn sick significant silly similar simple simply since single six sixteen sixty "
    "slight slow small smaller smallest smart soft solid somehow somewhat somewhere soon sooner sorry sorta specific "
    "standard still straight strange strict strong stupid such sudden sufficient suitable sunday super sure tbh ten "
    "terrible thank thankful thanks thanx therefore third thirteen thirty thorough three through thru thursday thx "
    "tiny tired todo together tons totally toward towards tricky true tuesday twelve twenty twice two typical ugly "
    "unable unclear under unfortunately unique unless unlikely unusual upset upside urgent useful useless usual valid "
    "valuable various vary versus via wanna warm wasn wednesday weird welcome well whole whose wide willing within "
    "without wonderful worse worst worth worthwhile wouldn wrong wtf yeah yep yes yet young younger zero"
)
# Spanish, Portuguese, French, Italian, German, Dutch, Russian: what is long enough to be taken for a topic.
_OTHER_LANGUAGES_TEXT = (
    "ahora algo alguien alguna algunos antes aqui aquí aunque bien buenas buenos cada como cómo cual cuál cuando "
    "cuándo cuanto desde después donde dónde ella ellos entonces entre esta está estaba están estar este esto estos "
    "estoy favor gracias gustaría hacer hacia hasta hola luego mañana menos mientras mismo mucho mucha muchas muchos "
    "nada nosotros nuestra nuestro otra otro otros para pero poco podemos podría porque puede puedes puedo quiero "
    "quiere quieres según siempre siendo sobre solo sólo también tambien tanto tener tengo tiene tienes todas "
    "todavía todo todos tras usted vamos veces agora ainda alguém alguma assim depois então estamos estou fazer isso "
    "mais mesmo minha muito muita não nossa obrigado obrigada onde pode posso preciso quando quero sempre seria "
    "temos tenho também você vocês alors après aussi autre autres avant avec avoir beaucoup bonjour bonsoir cela "
    "celle celui cette chez chose comme comment dans demain depuis donc elle elles encore ensuite être faire fait "
    "jamais juste leurs maintenant même merci moins notre nous parce parfois pendant peut peux plus plutôt pour "
    "pourquoi pourrait pouvez pouvoir puis quand quel quelle quelque quelques quoi sans serait seulement sont "
    "souvent sous suis toujours tous tout toute toutes très trop vers voici voilà votre vous voudrais vraiment "
    "adesso allora anche ancora buongiorno ciao come cosa così della delle dello dopo dove essere fare grazie hanno "
    "molto nella niente nostro ogni perché però poi possiamo prima puoi quale qualcosa quello questa questo sono "
    "sulla tutti tutto vorrei aber alle alles also andere auch bereits bitte brauche damit danach danke dann dass "
    "deine dein denn dich dies diese diesem diesen dieser dieses doch dort durch eigentlich eine einem einen einer "
    "eines einfach einige etwas euch genau gerade gerne gestern gibt habe haben hallo hatte hätte heute hier hinter "
    "ihnen ihre immer jede jeder jetzt kann kannst kein keine keinen können könnte könntest machen manchmal mehr "
    "mein meine meinem meinen meiner mich möchte morgen muss müssen nach nämlich natürlich neben nicht nichts noch "
    "oder ohne sagen schon sehr sein seine seit sich sind sollte sondern soll sonst über unser unsere unter viel "
    "viele vielen vielleicht waren warum weil welche welcher wenig wenn werden wieder wird wirklich wissen wollen "
    "wurde würde zwischen altijd bedankt deze dingen echt graag heeft hebben hebt kunnen maar meer misschien moeten "
    "niet nieuwe omdat onze veel vandaag voor waarom waar wanneer weer welke willen worden zijn zoals zonder zouden "
    "будет было быть вообще вопрос время всегда всего вчера говорить даже делать дела если есть завтра здесь "
    "здравствуйте именно иногда какая какие какой когда которая которые который кстати лучше может можно можешь "
    "можете надо нам например нельзя немного никогда ничего нужно очень пожалуйста пока после потом потому почему "
    "привет просто сегодня сейчас сказать сколько снова спасибо такая такие такой также теперь тоже только тогда "
    "хорошо хотел хотела хочу через чтобы чтото этого этой этому этот"
)
_SHORT_OF_OTHER_LANGUAGES_TEXT = (
    "con del las los mas más mis muy por que qué ser sin son soy sus tan una uno unos unas ver hay eso ese esa aos "
    "com das dos ele ela ema foi meu nas nos pra sao são sem seu sou sua tem uma ces des est les lui mes mon par pas "
    "peu pour qui sa ses sur une vos che chi dal gli hai non per piu più sei tra als auf aus bei beim bin bis dem den "
    "der die dir doch ein hat hilf ich ihm ihn ihr ist kam man mir mit muß nun nur sie und uns vom von vor war was "
    "wer wie wir wo zum zur wegen helfen hilfe ayudar ayudarme aider lunes martes miércoles jueves viernes sábado "
    "domingo lundi mardi mercredi jeudi vendredi samedi dimanche montag dienstag mittwoch donnerstag freitag samstag "
    "sonntag juli juni januar februar märz april mai dan dat dit een het hoe ik met mij naar nog ook uit van wat wil "
    "zij без был ваш вам все всё где для его ему еще ещё или как кто мне мой моя наш нас нет они она оно под при про "
    "сам так там тут уже чем что эта это помоги помочь dank"
)
_NOUNS_LIKE_VERBS_TEXT = (
    "building buildings reading readings writing writings meeting planning presentation setting settings listing "
    "listening training finding findings watches limits leads visits viewing reviews leaves lives planner walking"
)
_NOUNS_LIKE_VERBS = frozenset(_NOUNS_LIKE_VERBS_TEXT.split())
"""What has the stem of a general verb, though it is a thing people talk about."""
_ENGLISH = frozenset(f"{_VERBS_TEXT} {_NOUNS_TEXT} {_OTHERS_TEXT}".split())
_GENERAL = STOP_WORDS | _ENGLISH | frozenset(f"{_OTHER_LANGUAGES_TEXT} {_SHORT_OF_OTHER_LANGUAGES_TEXT}".split())
_GENERAL_STEMS = frozenset(stem(word) for word in _ENGLISH)
_NO_ADVERBS_TEXT = (
    "family supply reply italy assembly anomaly monopoly butterfly july jelly belly bully rally tally ally fly "
    "homily firefly melancholy emily molly sally kelly holly billy polly panoply lily ply folly trolley"
)
_NO_ADVERBS = frozenset(_NO_ADVERBS_TEXT.split())
"""What ends like an adverb all the same."""
_KOREAN_TEXT = (
    "그리고 하지만 그런데 그래서 그러면 그래도 오늘 내일 어제 지금 정말 진짜 너무 많이 조금 아주 매우 어떻게 어떤 "
    "무엇 무슨 이것 그것 저것 여기 거기 저기 우리 저희 나는 저는 제가 내가 당신 이거 그거 저거 이런 그런 저런 때문 "
    "대해 위해 관련 다시 계속 항상 가끔 먼저 나중 혹시 안녕 감사 부탁 문제 질문 사람 시간 경우 정도 생각 방법 하나 "
    "모두 다른 같은 모든 이번 다음 지난"
)
KOREAN_GENERAL = frozenset(_KOREAN_TEXT.split())
UNSPACED_GENERAL = re.compile(
    "什么|什麼|怎么样|怎么|怎麼|为什么|為什麼|因为|因為|所以|但是|可是|而且|如果|虽然|然后|然後|或者|还是|還是|还有|"
    "還有|已经|已經|可以|可能|应该|應該|需要|知道|觉得|覺得|认为|希望|喜欢|喜歡|想要|准备|準備|开始|開始|继续|繼續|"
    "告诉|告訴|请问|請問|谢谢|謝謝|你好|您好|不好意思|没有|沒有|不是|不要|不能|不会|就是|只是|这个|這個|那个|那個|"
    "这些|這些|那些|这样|這樣|那样|这里|那里|一个|一個|一下|一些|一点|一直|一起|有点|有些|我们|我們|你们|你們|他们|"
    "他們|她们|自己|大家|别人|今天|明天|昨天|现在|現在|刚才|以前|以后|之前|之后|时候|時候|时间|時間|问题|問題|事情|"
    "东西|東西|方面|情况|办法|比较|非常|特别|真的|其实|其實|关于|關於|对于|帮我|幫我|帮忙|看看|试试|怎样|多少|几个|"
    "哪个|哪些|哪里|下周|上周|本周|今日|明日|昨日|今年|去年|来年|時点|場合|以上|以下|必要|自分|教え|思い|思う|出来|"
    "出来る|下さい|有難|質問|方法"
)
_FUNCTION_TEXT = (
    "的了是我你您他她它在和与與及或就都也很吗嗎呢吧啊呀哦嘛这這那哪有没沒不要会"
    "會能想去来來到对對从從把被给給让讓用跟个個些着過过得地再又还還才只做说說看"
    "问問吃买買の"
)
FUNCTION_CHARS = frozenset(_FUNCTION_TEXT)
"""Characters that no topic begins or ends with."""


def is_general(form: str) -> bool:
    """Whether a word says nothing of what is talked about."""
    word = form.lower().replace("'", "")
    if word in _NOUNS_LIKE_VERBS:
        return False
    if word in _GENERAL or stem(word) in _GENERAL_STEMS:
        return True
    return word.endswith("ly") and len(word) > 5 and word.isascii() and word not in _NO_ADVERBS
