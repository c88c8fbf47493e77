"""Text to the numbers that BERT's uncased models read, cut to what such a model takes."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from offbook.models.texts import readable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

UNKNOWN = "[UNK]"
START, END = "[CLS]", "[SEP]"
SPECIAL = ("[PAD]", UNKNOWN, START, END, "[MASK]")
LONGEST_WORD_CHARS = 100
"""A longer word is one unknown piece; so a word has at most that many pieces."""

FIRST_LOOK_CHARS = 2_048
"""Holds 256 pieces of most texts. More is read only where it does not: reading megabytes for 256 pieces is waste."""
LAST_LOOK_CHARS = 131_072
"""Less than 256 pieces in that much are blanks and endless words; what follows is not looked for."""


class WordPiece:
    """Thread-safe, and on the caller's thread only: `encode_batch` of the library would take every core."""

    def __init__(self, max_pieces: int) -> None:
        self._tokenizer = _tokenizer()
        self._start, self._end = self._tokenizer.encode(START + END, add_special_tokens=False).ids
        self._room = max_pieces - 2

    def pieces(self, text: str) -> list[int]:
        """At most `max_pieces`, between a start and an end. Exactly those that reading the whole text would give."""
        look = FIRST_LOOK_CHARS
        while True:
            found = self._tokenizer.encode(readable(text[:look]), add_special_tokens=False).ids
            # The cut can change the last word, and nothing before it.
            if look >= min(len(text), LAST_LOOK_CHARS) or len(found) >= self._room + LONGEST_WORD_CHARS:
                return [self._start, *found[: self._room], self._end]
            look *= 4


@cache
def vocabulary_digest() -> str:
    """SHA-256 of the vocabulary."""
    return sha256(_vocabulary()).hexdigest()


def _vocabulary() -> bytes:
    return gzip.decompress(files("offbook.models").joinpath("data/wordpiece-uncased.txt.gz").read_bytes())


def _tokenizer() -> Tokenizer:
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import WordPiece as Model
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    numbers = {piece: number for number, piece in enumerate(_vocabulary().decode().split("\n")[:-1])}
    tokenizer = Tokenizer(Model(numbers, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD_CHARS))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens([AddedToken(piece, normalized=False, special=True) for piece in SPECIAL])
    return tokenizer
