"""The one question of `offbook openclaw setup`: who writes the memory, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from offbook.cli.output import printable, warn

if TYPE_CHECKING:
    from offbook.openclaw.setup import Prepared, Reached
    from offbook.openclaw.writer import Writer

ANSWER_SECONDS = 30.0
"""The estimate looks at every session of an agent."""
MOST_TRIES = 3


def given_writer(writer: str | None, model: str | None, level: str) -> Writer | None:
    """What the options say."""
    from offbook.model.errors import InvalidInput
    from offbook.openclaw.writer import writer_named

    if writer is None:
        if model is not None:
            raise click.UsageError("--writer-model names the model of an endpoint: name that with --writer URL")
        return None
    if level == "off":
        raise click.UsageError("--level off takes the plugin away, so there is nobody to name with --writer")
    try:
        return writer_named(writer, model)
    except InvalidInput as error:
        raise click.UsageError(error.detail) from None


def ask_writer(prepared: Prepared, environ: Mapping[str, str]) -> Writer:
    """Asked once, on a terminal: the answer is written down on both sides."""
    from offbook.model.settings import load
    from offbook.openclaw.setup import reached_by
    from offbook.openclaw.writer import Writer, foreseen, host_model

    config = prepared.plan.config
    reached = reached_by(config, environ)
    settings = load(reached.home, environ=environ).settings
    model = host_model(config)
    waiting = _waiting_summaries(reached)
    click.echo("Who writes the memory?")
    named = f" ({model.name})" if model is not None else ""
    click.echo(printable(f"  1  the agent's own model{named}, in the background (recommended)"))
    for line in foreseen(settings, waiting, model.prices if model is not None else None):
        click.echo(printable(f"       {line}"))
    click.echo("  2  another endpoint, OpenAI-compatible or Anthropic, within the same limits")
    click.echo("  3  nobody: sentences are quoted as they were said, nothing is sent anywhere")
    answer = click.prompt("Your choice", type=click.Choice(["1", "2", "3"]), default="1", err=True)
    if answer == "2":
        return _ask_endpoint()
    return Writer("host") if answer == "1" else Writer("none")


def _ask_endpoint() -> Writer:
    from offbook.model.errors import InvalidInput
    from offbook.openclaw.writer import writer_named

    for _ in range(MOST_TRIES):
        url = click.prompt("Its address, with /v1 where it has that", default="http://127.0.0.1:11434/v1", err=True)
        model = click.prompt("The model to ask for", err=True)
        try:
            return writer_named(url, model)
        except InvalidInput as error:
            warn(printable(error.detail))
    raise click.UsageError("no address that can be used: run it again, or name it with --writer URL --writer-model M")


def _waiting_summaries(reached: Reached) -> int | None:
    """What the provider has still to summarise, of all agents; None where it does not answer."""
    from offbook.cli.answers import asked, typed
    from offbook.client.blocking import Client
    from offbook.model.errors import ProviderError
    from offbook.model.status import Status
    from offbook.model.summary import CompressionEstimate

    reaching: dict[str, Any] = {"token": reached.token, "home": reached.home, "timeout_seconds": ANSWER_SECONDS}
    try:
        with Client(reached.endpoint, client="openclaw-setup", **reaching) as client:
            agents = typed(client.status(None), Status).agents
            answers = [asked(client, "compress", agentId=agent, dryRun=True) for agent in agents]
            return sum(typed(each, CompressionEstimate).summaries for each in answers)
    except ProviderError:
        return None


def show_present(prepared: Prepared) -> None:
    if prepared.present is not None:
        click.echo(printable(f"memory written by: {prepared.present.told}"))


def show_provider_file(prepared: Prepared, colours: Mapping[str, str]) -> None:
    """What changes in Offbook's own settings."""
    provider = prepared.provider
    if provider is None or not provider.is_changed:
        return
    click.echo(str(provider.path))
    for line in provider.diff():
        click.secho(printable(line), fg=colours.get(line[:1]))


def writer_document(prepared: Prepared) -> dict[str, Any]:
    """For --json."""
    provider = prepared.provider
    document: dict[str, Any] = {}
    if prepared.present is not None:
        document["writer"] = {"told": prepared.present.told, "isChosen": prepared.present.is_chosen}
    if provider is not None and provider.is_changed:
        document["provider"] = {"config": str(provider.path), "diff": provider.diff(context=0)}
    return document
