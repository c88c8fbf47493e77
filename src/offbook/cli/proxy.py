"""`offbook proxy`: an OpenAI-compatible API in front of another, with memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from offbook.cli.options import UTF8, Invocation, common_options, pass_invocation, wrong_where_refused

if TYPE_CHECKING:
    from ssl import SSLContext

EPILOG = """\b
Examples:
  offbook proxy --upstream https://api.openai.com/v1
  offbook proxy --upstream http://127.0.0.1:11434/v1 --window 32768
  offbook proxy --upstream https://api.openai.com/v1 --listen 127.0.0.1:0 --agent work
  OPENAI_BASE_URL=http://127.0.0.1:8771/v1 python my_agent.py
  SSL_CERT_FILE=ca.pem offbook proxy --upstream https://models.example/v1

\b
Any client works as before, with its own key: only its base URL is another.
Chat completions and responses get memory, all else passes untouched.
A provider should run (`offbook serve`); where none answers, requests pass
unchanged. SIGTERM and Ctrl-C end it cleanly.
"""


@click.command("proxy", epilog=EPILOG)
@click.option(
    "--upstream",
    type=UTF8,
    required=True,
    metavar="URL",
    help="Base URL of the API, as clients have it: http:// or https://.",
)
@click.option(
    "--listen", type=UTF8, default="127.0.0.1:8771", show_default=True, metavar="HOST:PORT", help="Where to listen."
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Tokens the model takes.  [default: the setting tokenBudget.contextWindow]",
)
@click.option(
    "--deadline",
    "deadline_ms",
    type=click.IntRange(min=1, max=10_000),
    default=250,
    show_default=True,
    metavar="MS",
    help="Milliseconds a request waits for memory at most.",
)
@click.option("--tls-cert", type=UTF8, metavar="FILE", help="Certificate, to listen beyond loopback.")
@click.option("--tls-key", type=UTF8, metavar="FILE", help="Key of that certificate.")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    upstream: str,
    listen: str,
    window: int | None,
    deadline_ms: int,
    tls_cert: str | None,
    tls_key: str | None,
) -> None:
    """Put memory into the conversations of any OpenAI-compatible client."""
    from offbook.cli.serve import _run
    from offbook.client.clients import AsyncClient
    from offbook.contrib.proxy.server import read_listen, read_upstream, run
    from offbook.contrib.proxy.swaps import Limits
    from offbook.model.home import TokenBook
    from offbook.model.logs import configure_logs
    from offbook.model.settings import load

    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    home = invocation.home
    settings = load(home.folder, environ=invocation.environ, flags={}).settings
    with wrong_where_refused("--upstream"):
        api = read_upstream(upstream)
    tls = _tls(tls_cert, tls_key)
    with wrong_where_refused("--listen"):
        where = read_listen(listen, tls)
    limits = Limits(window or settings.token_budget.context_window, settings.memory.compaction.threshold)
    configure_logs(settings.log.level, settings.log.format)
    # One agent, always named: left to the provider, a conversation's name (`agent:<agentId>:…`) would choose it, and
    # names come from clients.
    agent_id = invocation.agent or settings.default_agent
    memory = AsyncClient(
        invocation.endpoint, agent_id=agent_id, token=invocation.token, client="proxy", home=home.folder
    )
    announce = _announce_json if invocation.is_json else _announce
    _run(
        run(
            memory,
            api,
            where,
            limits,
            agent_id=agent_id,
            deadline_seconds=deadline_ms / 1_000,
            callers=TokenBook(home).callers,
            on_ready=announce,
        )
    )


def _tls(certificate: str | None, key: str | None) -> SSLContext | None:
    if certificate is None:
        return None
    from offbook.api.daemon import tls_context

    return tls_context(certificate, key)


def _announce(base_url: str) -> None:
    _say(f"Offbook's proxy is ready: use {base_url} as the base URL of your client.")


def _announce_json(base_url: str) -> None:
    from offbook.cli.output import print_json

    print_json({"baseUrl": base_url})
    sys.stdout.flush()


def _say(line: str) -> None:
    try:
        click.echo(line)
        sys.stdout.flush()
    except OSError:
        # Nobody reads our output. The proxy is up all the same, and its log says so.
        return
