from __future__ import annotations

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.search.words import (
    MAX_TERM_CHARS,
    PIECE_CHARS,
    STOP_WORDS,
    distinct_terms,
    indexed_terms,
    keyword_terms,
    pieces_of,
    query_terms,
    terms,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cats were running", ["cat", "run"]),
        ("run, Run; RUNNING!", ["run", "run", "run"]),
        ("getUserName", ["getusername", "get", "user", "name"]),
        ("max_query_chars", ["max_query_chars", "max", "queri", "char"]),
        ("v1.2.3", ["v1.2.3"]),
        ("3.14", ["3.14"]),
        ("1,000", ["1000"]),
        ("10:30", ["10:30"]),
        ("2026-01-02", ["2026-01-02", "2026"]),
        ("config.yaml", ["config.yaml", "config", "yaml"]),
        ("ada@example.com", ["ada@example.com", "ada", "exampl", "com"]),
        ("GPT-4", ["gpt-4", "gpt", "4"]),
        ("iPhone15", ["iphone15", "phone", "15"]),
        ("JSONParser", ["jsonparser", "json", "parser"]),
        ("follow-up", ["follow", "followup"]),
        ("C++ and C#", ["c++", "c#"]),
        ("U.S.A.", ["usa"]),
        ("PCs", ["pc"]),
        ("a trip to the US", ["trip", "us"]),
        ("Caroline's", ["carolin"]),
        ("Caroline’s", ["carolin"]),
        ("I don't know", ["know"]),
        ("she'll swim", ["swim"]),
        ("O'Brien", ["obrien", "brien"]),
        ("_emphasis_", ["emphasis"]),
        ("café", ["cafe"]),
        ("cafe\u0301", ["cafe"]),
        ("Łódź Straße", ["lodz", "strass"]),
        ("ＡＢＣ", ["abc"]),
        ("我们去上海", ["我们", "们去", "去上", "上海", "go", "shanghai"]),
        ("猫", ["猫", "cat"]),
        ("iPhone手机", ["iphone", "phone", "手机"]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("ﾃｽﾄ", ["テス", "スト"]),
        ("공부를", ["공부를", "공부", "부를"]),
        ("API를", ["api", "를"]),
        ("الكتاب", ["كتاب"]),
        ("والكتاب", ["كتاب"]),
        ("كِتَاب", ["كتاب"]),
        ("مدرسة", ["مدرسه"]),
        ("لبيروت", ["لبيروت", "بيروت"]),
        ("ёлка", ["елка"]),
        ("мой", ["мой"]),
        ("ΕΛΛΆΔΑ", ["ελλαδα"]),
        ("हिन्दी", ["हिन्दी"]),
        ("שָׁלוֹם", ["שלום"]),
        ("ดีครับ", ["ดีค", "ครั", "รับ"]),
        ("I ❤️ 🐶", ["❤", "🐶"]),
        ("👍🏽", ["👍"]),
        ("🇵🇹", ["🇵🇹"]),
        ("", []),
        ("... --- ___", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_a_text_of_stop_words_gives_them() -> None:
    assert terms("Who are you?") == ["who", "are", "you"]
    assert terms("don't") == ["dont"]
    assert query_terms("who are you, who") == ["who", "are", "you"]


def test_query_terms_are_distinct_and_without_boilerplate() -> None:
    assert query_terms("Do you remember the recipe, my recipe for bread?") == ["recip", "bread"]
    assert query_terms("Do you remember what I told you?") == ["remember", "tell"]


def test_a_prefix_of_one_letter_hides_no_arabic_word() -> None:
    assert set(query_terms("بيروت")) & set(terms("سافرت لبيروت"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("上海", "我们明天去上海开会"),
        ("タワー", "東京タワーに行った"),
        ("공부", "공부를 했어요"),
        ("user name", "call getUserName()"),
        ("words.py", "src/offbook/search/words.py is slow"),
        ("moving house", "she moved to another house"),
    ],
)
def test_a_question_finds_what_was_said(asked: str, said: str) -> None:
    assert set(query_terms(asked)) <= set(terms(said))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("海", "昨天我们去了里斯本看海。"),
        ("猫", "我的猫叫小白"),
        ("鱼", "它喜欢吃鱼，也喝水"),
        ("犬", "私の犬の名前はハチです。"),
        ("ﾈ", "ネコがいる"),
        ("ปู", "ปีนี้มีปูเยอะ"),
        ("물", "어제 물을 마셨어요"),
    ],
)
def test_a_word_of_one_letter_is_found_inside_what_was_said(asked: str, said: str) -> None:
    assert set(query_terms(asked)) & set(indexed_terms(said))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("What did Mia say?", "Ho visto Mia ieri sera al parco."),
        ("AI", "Stiamo costruendo un modello di AI per il cliente."),
        ("Where is the database?", "Ich habe die Datenbank auf dem alten Server gelassen."),
        ("Wo ist die Datenbank?", "I left the database on the old server."),
        ("数据库", "The database is on the old server."),
    ],
)
def test_a_word_is_found_across_languages(asked: str, said: str) -> None:
    assert set(query_terms(asked)) & set(indexed_terms(said))


@pytest.mark.parametrize("keyword", ["die Datenbank", "Datenbank", "auf dem alten Server"])
def test_a_keyword_is_found_as_it_is_written(keyword: str) -> None:
    said = "Ich habe die Datenbank auf dem alten Server gelassen."
    assert set(keyword_terms(keyword)) <= set(indexed_terms(said))


def test_letters_are_indexed_once_and_beside_the_pairs() -> None:
    assert indexed_terms("看海看海 cats") == [*terms("看海看海 cats"), "看", "海"]
    assert indexed_terms("海") == ["海", "sea"]
    assert indexed_terms("물건을") == [*terms("물건을"), "물"]


@given(st.text(alphabet=st.characters(max_codepoint=0x0DFF)))
def test_spaced_scripts_are_indexed_by_their_terms_alone(text: str) -> None:
    assert indexed_terms(text) == terms(text)


@given(st.text() | st.text(alphabet="看海 ネコปูม물건a。"))
def test_whatever_is_asked_in_the_words_of_a_text_is_in_its_index(text: str) -> None:
    found = indexed_terms(text)
    assert found[: len(terms(text))] == terms(text)
    assert all(0 < len(term) <= MAX_TERM_CHARS and not any(map(str.isspace, term)) for term in found)


@given(st.text())
def test_any_text(text: str) -> None:
    found = terms(text)
    assert all(0 < len(term) <= MAX_TERM_CHARS for term in found)
    distinct = query_terms(text)
    assert len(set(distinct)) == len(distinct)
    assert set(distinct) <= set(found)
    assert bool(distinct) == bool(found)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_composed_and_decomposed_are_the_same(text: str) -> None:
    assert terms(unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text))) == terms(
        unicodedata.normalize("NFKC", text)
    )


@given(st.lists(st.sampled_from([*sorted(STOP_WORDS), "bread", "getUserName", "v1.2", "タワー"]), min_size=1))
def test_words_are_read_one_by_one(words: list[str]) -> None:
    content = [term for word in words if word not in STOP_WORDS for term in terms(word)]
    assert terms(" ".join(words)) == (content or words)


@pytest.mark.parametrize(
    "piece", ["a", "a.", "'", "1,", "1:", "aB", "_", "a-b-", "字", "한", "é", "ا", "🐶", "\u0301", "#+", " "]
)
def test_time_grows_with_the_text(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    started = time.process_time()
    terms(text)
    assert time.process_time() - started < 2


def test_english_is_read_fast() -> None:
    text = (
        "The committee decided yesterday that Maria's proposal, version 1.2, was moving in the right direction. " * 5000
    )
    started = time.process_time()
    terms(text)
    assert (
        len(text) / (time.process_time() - started) > 1_000_000
    )  # 8 MB/s when idle; the bound leaves room for a busy machine


@given(st.text(max_size=200), st.integers(8, 60))
def test_stretches_leave_nothing_out(text: str, chars: int) -> None:
    cut = list(pieces_of(text, chars))
    assert [start for start, _ in cut][:1] == [0] * bool(text)
    assert all(0 < end - start <= chars for start, end in cut)
    assert all(start <= end for (_, end), (start, _) in pairwise(cut))
    assert not text or cut[-1][1] == len(text)


@pytest.mark.parametrize(
    "said", ["The cats ran home to getUserName.", "昨天我们去了里斯本看海。", "Müller's 고양이 page3"]
)
def test_the_distinct_terms_of_a_long_text_are_those_of_all_of_it(said: str) -> None:
    filler = "It rained in the valley. "
    text = f"{filler * (PIECE_CHARS // 10)}{said}{filler * 100}{said}"
    found = distinct_terms(text)
    assert len(found) == len(set(found))
    assert set(found) == set(indexed_terms(text))


def test_of_a_hash_only_the_whole_is_a_term() -> None:
    assert distinct_terms("3f2a91bc page3 3f2a91bc") == ["3f2a91bc", "page3", "page", "3"]
