"""Twenty things said once in a long conversation, in three languages: what was said, what is asked at the end, and a word
that only the answer has."""

from __future__ import annotations

from typing import NamedTuple


class Fact(NamedTuple):
    said: str
    question: str
    keyword: str


ENGLISH = (
    Fact(
        "The spare key of the boathouse hangs behind the barometer.", "Where is the boathouse's spare key?", "barometer"
    ),
    Fact("My sister Ottilie plays the viola in Tromsø.", "What does my sister Ottilie play?", "viola"),
    Fact("We sell the old tractor in spring, not in autumn.", "When do we sell the old tractor?", "spring"),
    Fact(
        "The cabin's wifi password is on the back of the owl picture.",
        "Where is the wifi password of the cabin?",
        "owl picture",
    ),
    Fact("Our accountant is called Mr Pettersen.", "What is our accountant called?", "Pettersen"),
    Fact("I am allergic to walnuts.", "Which nuts can I not eat?", "walnuts"),
    Fact("The dentist moved my appointment to the ninth of March.", "When is my dentist appointment?", "ninth"),
    Fact("The staging server runs in Frankfurt.", "Where does the staging server run?", "Frankfurt"),
    Fact("Our release branch is named bluebird.", "What is our release branch named?", "bluebird"),
    Fact("The cat answers to Professor.", "What name does the cat answer to?", "Professor"),
    Fact("Deliveries go to the side door on Mill Lane.", "Where do deliveries go?", "Mill"),
    Fact("My mother's birthday is on the fourth of July.", "When is my mother's birthday?", "July"),
    Fact("The backup disk is in the biscuit tin.", "Where is the backup disk?", "biscuit"),
    Fact("We pay the gardener in cash every second Friday.", "How do we pay the gardener?", "cash"),
    Fact("The invoice template is called quarry-blue.", "What is the invoice template called?", "quarry"),
    Fact("The choir rehearses in the old fire station.", "Where does the choir rehearse?", "fire station"),
    Fact("Uncle Bertil repaired the gramophone.", "Who repaired the gramophone?", "Bertil"),
    Fact("The ferry to the island leaves at ten past six.", "When does the ferry to the island leave?", "ten past six"),
    Fact("The telescope needs a left-handed thread adapter.", "What does the telescope need?", "left-handed"),
    Fact("Our landlord forbids charcoal on the balcony.", "What does our landlord forbid on the balcony?", "charcoal"),
)
GERMAN = (
    Fact(
        "Der Schlüssel zum Bootshaus hängt hinter dem Barometer.", "Wo hängt der Schlüssel zum Bootshaus?", "Barometer"
    ),
    Fact("Meine Schwester Ottilie spielt Bratsche in Tromsø.", "Was spielt meine Schwester Ottilie?", "Bratsche"),
    Fact("Den alten Traktor verkaufen wir im Frühling.", "Wann verkaufen wir den alten Traktor?", "Frühling"),
    Fact(
        "Das WLAN-Passwort der Hütte steht hinter dem Eulenbild.", "Wo steht das WLAN-Passwort der Hütte?", "Eulenbild"
    ),
    Fact("Unser Steuerberater heißt Herr Pettersen.", "Wie heißt unser Steuerberater?", "Pettersen"),
    Fact("Gegen Walnüsse bin ich allergisch.", "Gegen welche Nüsse bin ich allergisch?", "Walnüsse"),
    Fact(
        "Der Zahnarzt hat meinen Termin auf den neunten März verlegt.", "Wann ist mein Termin beim Zahnarzt?", "neunten"
    ),
    Fact("Der Testserver steht in Frankfurt.", "Wo steht der Testserver?", "Frankfurt"),
    Fact("Unser Release-Zweig heißt Blaumeise.", "Wie heißt unser Release-Zweig?", "Blaumeise"),
    Fact("Die Katze hört auf den Namen Professor.", "Auf welchen Namen hört die Katze?", "Professor"),
    Fact("Lieferungen gehen an die Seitentür in der Mühlgasse.", "Wohin gehen Lieferungen?", "Mühlgasse"),
    Fact("Meine Mutter hat am vierten Juli Geburtstag.", "Wann hat meine Mutter Geburtstag?", "Juli"),
    Fact("Die Sicherungsplatte liegt in der Keksdose.", "Wo liegt die Sicherungsplatte?", "Keksdose"),
    Fact("Den Gärtner bezahlen wir jeden zweiten Freitag mit Honig.", "Womit bezahlen wir den Gärtner?", "Honig"),
    Fact("Die Rechnungsvorlage heißt Steinbruchblau.", "Wie heißt die Rechnungsvorlage?", "Steinbruchblau"),
    Fact("Der Chor probt in der alten Feuerwache.", "Wo probt der Chor?", "Feuerwache"),
    Fact("Onkel Bertil hat das Grammophon repariert.", "Wer hat das Grammophon repariert?", "Bertil"),
    Fact("Die Fähre zur Insel fährt um zehn nach sechs.", "Wann fährt die Fähre zur Insel?", "zehn nach sechs"),
    Fact("Das Teleskop braucht einen Adapter mit Linksgewinde.", "Was braucht das Teleskop?", "Linksgewinde"),
    Fact(
        "Der Vermieter verbietet Holzkohle auf dem Balkon.", "Was verbietet der Vermieter auf dem Balkon?", "Holzkohle"
    ),
)
CHINESE = (
    Fact("船屋的备用钥匙挂在气压计后面。", "船屋的备用钥匙在哪里？", "气压计"),
    Fact("我妹妹奥蒂莉在特罗姆瑟拉中提琴。", "我妹妹奥蒂莉演奏什么乐器？", "中提琴"),
    Fact("那台旧拖拉机我们春天卖掉。", "那台旧拖拉机什么时候卖？", "春天"),
    Fact("小木屋的无线密码写在猫头鹰画的背面。", "小木屋的无线密码写在哪里？", "猫头鹰"),
    Fact("我们的会计姓欧阳。", "我们的会计姓什么？", "欧阳"),
    Fact("我对核桃过敏。", "我对什么坚果过敏？", "核桃"),
    Fact("牙医把我的预约改到了三月九日。", "我的牙医预约是哪一天？", "三月九日"),
    Fact("测试服务器放在法兰克福。", "测试服务器放在哪里？", "法兰克福"),
    Fact("我们的发布分支叫蓝鸟。", "我们的发布分支叫什么？", "蓝鸟"),
    Fact("那只猫的名字叫教授。", "那只猫叫什么名字？", "教授"),
    Fact("快递要送到磨坊巷的侧门。", "快递要送到哪里？", "磨坊巷"),
    Fact("我妈妈的生日是七月四日。", "我妈妈的生日是哪一天？", "七月四日"),
    Fact("备份硬盘放在饼干盒里。", "备份硬盘放在哪里？", "饼干盒"),
    Fact("园丁的工钱每隔一个星期五付现金。", "园丁的工钱怎么付？", "现金"),
    Fact("发票模板叫采石场蓝。", "发票模板叫什么？", "采石场"),
    Fact("合唱团在旧消防站排练。", "合唱团在哪里排练？", "消防站"),
    Fact("留声机是贝蒂尔叔叔修好的。", "留声机是谁修好的？", "贝蒂尔"),
    Fact("去岛上的渡轮六点十分开。", "去岛上的渡轮几点开？", "六点十分"),
    Fact("望远镜需要一个左旋螺纹的转接环。", "望远镜需要什么？", "左旋"),
    Fact("房东不许在阳台上用木炭。", "房东不许在阳台上用什么？", "木炭"),
)
