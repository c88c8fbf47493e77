from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from offbook.model.home import Home
from offbook.model.summary import Usage
from offbook.models import weights
from offbook.models.protocols import Prompt, Written
from offbook.models.summarizers import available, llama
from tests.unit.cli.conftest import Run
from tests.unit.models.onnx_models import DIMENSIONS, embedding_folder


def test_status_shows_the_model_and_makes_nothing(run: Run, home: Home) -> None:
    result = run("model", "status")
    assert result.exit_code == 0
    assert "Xenova/all-MiniLM-L6-v2 (local)" in result.stdout
    assert "its SHA-256 is right" in result.stdout
    assert not home.folder.exists()


def test_status_as_json_fails_where_there_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    model = msgspec.structs.replace(weights.MINILM, package="no_such_package_of_weights")
    monkeypatch.setattr(weights, "MINILM", model)
    result = run("model", "status", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert (document["kind"], document["where"], document["isVerified"]) == ("local", None, None)
    assert "offbook model install" in document["problem"]


def test_status_of_what_is_switched_off_is_no_fault(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_EMBEDDING_MODEL", "none")
    result = run("model", "status")
    assert (result.exit_code, result.stdout) == (0, "model        none: embeddings are switched off\n")


def test_install_puts_it_into_the_data_folder(run: Run, home: Home) -> None:
    path = weights.cached(weights.MINILM, home.models)
    assert run("model", "install").stdout == f"{path}\ninstalled, its SHA-256 is right\n"
    assert json.loads(run("model", "install", "--json").stdout)["path"] == str(path)
    assert json.loads(run("model", "status", "--json").stdout)["where"] == str(path)


def test_install_refuses_a_wrong_file(run: Run, home: Home, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"nonsense")
    result = run("model", "install", "--from", str(tmp_path / "model.onnx"))
    assert result.exit_code == 1
    assert "SHA-256 differs" in result.stderr
    assert weights.cached(weights.MINILM, home.models).exists() is False
    assert run("model", "install", "--from", str(tmp_path / "nothing")).exit_code == 2


def test_test_tells_how_near_texts_are(run: Run) -> None:
    texts = ["my cat is called Ada", "what is my pet's name?", "the deployment failed"]
    document = json.loads(run("model", "test", *texts, "--json").stdout)
    near, far = document["similarities"]
    assert near > far + 0.3
    told = run("model", "test", *texts).stdout
    assert f"{near:.3f}  'my cat is called Ada' and \"what is my pet's name?\"" in told
    assert "3 texts in" in told
    assert run("model", "test", "alone", "--json").exit_code == 0
    assert run("model", "test").exit_code == 2


def test_test_says_why_there_is_no_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_EMBEDDING_MODEL", "nomic-embed-text")
    result = run("model", "test", "a", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["type"] == "urn:offbook:problem:model-unavailable"


# ── the local summarizer's ──


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands for its weights, on a machine where their package is not installed."""
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF and more")
    model = msgspec.structs.replace(
        weights.SMOLLM2,
        package="no_such_package_of_weights",
        sha256=sha256(path.read_bytes()).hexdigest(),
        size_bytes=path.stat().st_size,
    )
    monkeypatch.setattr(weights, "SMOLLM2", model)
    monkeypatch.setattr(llama, "find_spec", lambda name: name)
    return path


def test_install_of_the_summarizer_says_what_is_left_to_do(
    run: Run, home: Home, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home.models / "smollm2-135m-instruct" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    result = run("model", "install", "--summarizer", "--from", str(small))
    assert result.stdout == (
        f"{path}\ninstalled, its SHA-256 is right\n"
        f'to use it, write order = ["local", "extractive"] under [summarizer] in {home.config}\n'
    )
    assert path.read_bytes() == small.read_bytes()
    assert not weights.cached(weights.MINILM, home.models).exists()

    monkeypatch.setenv("OFFBOOK_SUMMARIZER_ORDER", "local,extractive")
    monkeypatch.setattr(llama, "find_spec", lambda name: None)
    again = run("model", "install", "--summarizer")
    assert again.stdout == f"{path}\ninstalled, its SHA-256 is right\n"
    assert "pip install 'offbook[local]'" in again.stderr
    document = json.loads(run("model", "install", "--summarizer", "--json").stdout)
    assert document == {"path": str(path), "sha256": weights.SMOLLM2.sha256}


def test_install_of_the_summarizer_refuses_another_file(run: Run, home: Home, small: Path) -> None:
    small.write_bytes(b"GGUF and else")
    result = run("model", "install", "--summarizer", "--from", str(small))
    assert result.exit_code == 1
    assert "SHA-256 differs" in result.stderr
    assert not weights.cached(weights.SMOLLM2, home.models).exists()


def test_status_of_a_summarizer_that_is_wanted_and_missing_is_a_fault(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(run("model", "status", "--json").stdout)["summarizer"] is None
    assert "summarizer" not in run("model", "status").stdout
    monkeypatch.setenv("OFFBOOK_SUMMARIZER_ORDER", "local,extractive")
    result = run("model", "status")
    assert result.exit_code == 1
    assert "offbook model install --summarizer" in result.stdout
    run("model", "install", "--summarizer", "--from", str(small))
    result = run("model", "status")
    assert result.exit_code == 0
    told = result.stdout.partition("\n\n")[2].splitlines()
    assert told[0] == "summarizer   SmolLM2-135M-Instruct.Q4_1 (local)"
    assert told[2:] == ["verified     its SHA-256 is right", "runs         on llama.cpp"]


def test_status_of_a_summarizer_that_is_there_and_not_used_is_no_fault(
    run: Run, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("model", "install", "--summarizer", "--from", str(small))
    monkeypatch.setattr(llama, "find_spec", lambda name: None)
    result = run("model", "status")
    assert result.exit_code == 0
    assert "not used: summarizer.order does not have `local`" in result.stdout
    assert "runs         not yet" in result.stdout
    document = json.loads(run("model", "status", "--json").stdout)["summarizer"]
    assert (document["isWanted"], document["isRunnable"], document["isVerified"]) == (False, False, True)
    assert "pip install 'offbook[local]'" in document["problem"]


class Repeating:
    name, fingerprint, context_tokens = "local:repeating", "repeating:1", 8_192
    is_closed = False

    def write(self, prompt: Prompt) -> Written:
        (message,) = prompt.messages
        return Written(text=f"{message.content}\x1b[2J\n", usage=Usage(input_tokens=1_234, output_tokens=12))

    def close(self) -> None:
        self.is_closed = True


def test_test_lets_the_summarizer_write(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Repeating(), Repeating()]
    left = iter(made)
    monkeypatch.setattr(available, "open_local", lambda settings, models: next(left))
    told = run("model", "test", "--summarizer", "Ada is a cat.", "She is asleep.").stdout
    assert told.startswith("local:repeating, 1,234 tokens read and 12 written in 0.")
    assert told.endswith("two sentences:\n\nAda is a cat.\nShe is asleep.\\u001b[2J\n")
    document = json.loads(run("model", "test", "--summarizer", "Ada is a cat.", "--json").stdout)
    assert (document["model"], document["outputTokens"]) == ("local:repeating", 12)
    assert "Ada is a cat." in document["summary"]
    assert all(each.is_closed for each in made)


def test_test_says_how_to_get_a_summarizer(run: Run, small: Path) -> None:
    result = run("model", "test", "--summarizer", "a")
    assert (result.exit_code, small.exists()) == (1, True)
    assert "offbook model install --summarizer" in result.stderr


def test_a_folder_is_installed_and_used(run: Run, home: Home, tmp_path: Path) -> None:
    source = embedding_folder(tmp_path / "small")
    result = run("model", "install", str(source), "--query-prefix", "query: ", "--passage-prefix", "passage: ")
    assert result.exit_code == 0, result.stderr
    assert "installed as local:small, its SHA-256 is written down as it is now" in result.stdout
    assert "beside the old vectors" in result.stdout
    assert home.config.read_text() == f'[embedding]\nmodel = "local:small"\ndimensions = {DIMENSIONS}\n'
    status = json.loads(run("model", "status", "--json").stdout)
    assert (status["model"], status["isVerified"], status["problem"]) == ("local:small", True, None)
    document = json.loads(run("model", "test", "the cat eat fish", "die Katze frisst Fisch", "--json").stdout)
    assert document["similarities"] == [1.0]
    again = run("model", "install", str(source), "--query-prefix", "query: ", "--passage-prefix", "passage: ")
    assert "beside the old vectors" not in again.stdout


def test_a_folder_can_be_installed_for_later(run: Run, home: Home, tmp_path: Path) -> None:
    source = embedding_folder(tmp_path / "small")
    result = run("model", "install", str(source), "--name", "mine", "--no-use")
    assert f'model = "local:mine" and dimensions = {DIMENSIONS}' in result.stdout
    assert not home.config.exists()
    assert "local:mine, not used" in run("model", "status").stdout


def test_what_is_known_comes_with_its_own_ways(run: Run, home: Home, tmp_path: Path) -> None:
    assert run("model", "install", "multilingual", "--pooling", "cls").exit_code == 2
    assert run("model", "install", "no-such-model").exit_code == 2
    assert run("model", "install", "multilingual", "--summarizer").exit_code == 2
    wrong = run("model", "install", "multilingual", "--from", str(embedding_folder(tmp_path / "small")))
    assert wrong.exit_code == 1
    assert "SHA-256 differs" in wrong.stderr
    assert not home.config.exists()


def test_status_tells_who_reads_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OFFBOOK_RERANK_READER", "endpoint:bge")
    result = run("model", "status")
    assert result.exit_code == 1
    assert "read again   endpoint:bge" in result.stdout
    assert "set rerank.endpoint" in result.stdout
    monkeypatch.setenv("OFFBOOK_RERANK_ENDPOINT", "http://127.0.0.1:9/v1")
    assert run("model", "status").exit_code == 0
