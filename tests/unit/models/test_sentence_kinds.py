"""What the classifier makes of plain sentences, in six languages. How good it is is measured by `benchmarks/memory`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.model.sentences import sentences
from offbook.model.statement import KINDS
from offbook.models.sentence_kinds import read_sentences
from offbook.statements.reading import KEPT, OWN

PLAIN = [
    ("Our production database is Postgres 16 in eu-central-1.", "fact"),
    ("I prefer short answers without bullet points.", "preference"),
    ("From now on, always answer me in German.", "order"),
    ("We decided to use MariaDB for the reporting service.", "decision"),
    ("Can you write me an email to the landlord?", "task"),
    ("What is the capital of France?", "other"),
    ("Ich arbeite als Krankenschwester in Graz.", "fact"),
    ("Antworte mir ab jetzt immer auf Deutsch.", "order"),
    ("Prefiero respuestas cortas y sin listas.", "preference"),
    ("Vivo en Madrid con mi mujer y dos hijos.", "fact"),
    ("Je préfère les réponses courtes.", "preference"),
    ("J'habite à Lyon avec ma femme.", "fact"),
    ("Prefiro respostas curtas e diretas.", "preference"),
    ("Moro em Lisboa com a minha filha.", "fact"),
    ("我住在上海，有两个孩子。", "fact"),
    ("请以后一直用中文回答我。", "order"),
]


@pytest.mark.parametrize(("sentence", "kind"), PLAIN)
def test_a_plain_sentence_is_what_it_is(sentence: str, kind: str) -> None:
    (one,) = read_sentences(sentence, is_user=True)
    assert one.kind == kind
    assert one.own > 0.5


@pytest.mark.parametrize(
    "pasted",
    [
        "Imagine you are a solicitor in London.",
        "Translate this: “My name is Nina and I live in Graz.”",
    ],
)
def test_what_is_played_or_quoted_is_nobodys_own(pasted: str) -> None:
    (one, *_) = read_sentences(pasted, is_user=True)
    assert one.own < OWN or one.keep < KEPT


@given(st.text(max_size=600), st.booleans())
def test_every_sentence_is_read_and_nothing_else(text: str, is_user: bool) -> None:
    read = read_sentences(text, is_user=is_user)
    assert [(one.text, one.start, one.end) for one in read] == [
        (one.text, one.start, one.end) for one in sentences(text)
    ]
    for one in read:
        assert one.kind in KINDS
        assert all(0 <= value <= 1 for value in (one.sure, one.states, one.own, one.keep))


def test_done_again_it_is_the_same() -> None:
    text = " ".join(sentence for sentence, _ in PLAIN)
    assert read_sentences(text, is_user=True) == read_sentences(text, is_user=True)
