"""all-MiniLM-L6-v2 on this machine: onnxruntime, on the caller's thread, at most one core each."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offbook.model.errors import ModelUnavailable
from offbook.models import glossary, weights
from offbook.models.embedder import readable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer


# ── Text to the numbers that BERT's uncased models read, cut to what such a model takes ──

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
        self._start, self.end = self._tokenizer.encode(START + END, add_special_tokens=False).ids
        self._room = max_pieces - 2

    def pieces(self, text: str, reading: Callable[[str], str] = str) -> list[int]:
        """At most `max_pieces`, between a start and an end. Exactly those that reading the whole text would give."""
        look = FIRST_LOOK_CHARS
        while True:
            found = self._tokenizer.encode(reading(readable(text[:look])), add_special_tokens=False).ids
            # The cut can change the last word, and nothing before it.
            if look >= min(len(text), LAST_LOOK_CHARS) or len(found) >= self._room + LONGEST_WORD_CHARS:
                return [self._start, *found[: self._room], self.end]
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


_WORD = re.compile(r"[^\W\d_]+")
KNOWN_SHARE, FEWEST_UNKNOWN = 0.65, 3
"""Of a hundred English questions 95 have more, of a hundred German, French, Italian or Spanish ones 25."""
DIMENSIONS = 384
MAX_PIECES = 256
"""What the model was made for; it was trained on 128."""
TEXTS_PER_BATCH = 16
PIECES_PER_BATCH = 512
"""Padding included. More is no faster on one core, and the arena keeps what the largest batch took (2,048: 384 MB)."""


@cache
def fingerprint() -> str:
    """Of whatever `MiniLM` makes, known without loading it."""
    weights_digest, pieces = weights.MINILM.sha256, f"{MAX_PIECES} pieces"
    read = vocabulary_digest(), glossary.digest()
    made_from = ("all-MiniLM-L6-v2", weights_digest, *read, pieces, "mean", "unit length")
    return f"all-minilm-l6-v2-int8:{sha256(chr(0).join(made_from).encode()).hexdigest()[:16]}"


@cache
def _words() -> frozenset[str]:
    """Of the vocabulary, those that are whole words."""
    pieces = _vocabulary().decode().split("\n")[:-1]
    return frozenset(piece for piece in pieces if len(piece) > 1 and piece.isalpha())


def reads(text: str) -> bool:
    """Whether a text in Latin letters is in a language that there is a glossary of, or in the one the model was made
    for: then it knows most of its words as a whole. A few that it does not know may be names."""
    if glossary.in_english(text) != text:
        return True
    words = [word for word in _WORD.findall(text.lower()) if len(word) > 1]
    unknown = sum(word not in _words() for word in words)
    return unknown < FEWEST_UNKNOWN or unknown <= (1 - KNOWN_SHARE) * len(words)


class MiniLM:
    """An `Embedder`. Nothing in it changes after it was made, so threads share it without a lock."""

    def __init__(self, path: Path, *, name: str = "all-MiniLM-L6-v2") -> None:
        """`path` is of weights that `weights.ensure` has checked."""
        self.name = name
        self.fingerprint = fingerprint()
        self.dimensions = DIMENSIONS
        self._wordpiece = WordPiece(MAX_PIECES)
        self._session = open_session(path, mend="run `offbook model install`")

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        session = self._session
        if session is None:
            raise ModelUnavailable("the embedding model is closed")
        pieces = [self._wordpiece.pieces(text, glossary.in_english) for text in texts]
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for batch in batches([len(each) for each in pieces]):
            vectors[batch] = _run(session, [pieces[at] for at in batch])
        return vectors

    def close(self) -> None:
        """A call that runs in another thread comes to its end."""
        self._session = None


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which go together: those of like length, because the short are padded to the longest."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) == TEXTS_PER_BATCH or (len(batch) + 1) * lengths[at] > PIECES_PER_BATCH):
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _run(session: Any, pieces: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    import numpy as np

    ids = np.zeros((len(pieces), max(map(len, pieces))), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, each in enumerate(pieces):
        ids[row, : len(each)] = each
        mask[row, : len(each)] = 1
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    try:
        hidden: NDArray[np.float32] = session.run(["last_hidden_state"], given)[0]
    except Exception as error:  # what it raises has no other base; for want of memory, mostly
        raise ModelUnavailable(f"onnxruntime could not embed {ids.shape[0]} texts: {error}", retryable=True) from error
    # Sum and mean are the same direction, and the length becomes 1.
    summed = np.einsum("tph,tp->th", hidden, mask.astype(np.float32))
    return np.asarray(summed / np.linalg.norm(summed, axis=1, keepdims=True), dtype=np.float32)


def open_session(path: Path, *, mend: str) -> Any:
    """Of the runtime, for one model. `mend`: what to do where the file cannot be loaded."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # One arena that all threads share: without it malloc gives each its own (two threads: 486 MB, with it 269).
    options.enable_cpu_mem_arena = True
    options.enable_mem_pattern = False  # remembers a plan for each shape, and ours always differ
    options.log_severity_level = 3  # errors; they are raised as well
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # what it raises has no other base
        raise ModelUnavailable(f"onnxruntime cannot load {path} ({error}): {mend}") from error
