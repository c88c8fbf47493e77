"""`offbook mcp`, `hook`, `proxy`: the ways in for programs that know nothing of Offbook."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import click

from offbook.cli.options import (
    UTF8,
    Invocation,
    agent_option,
    common_options,
    home_option,
    pass_invocation,
    unread_url_option,
    url_option,
    wrong_where_refused,
)
from offbook.cli.output import print_json

if TYPE_CHECKING:
    from ssl import SSLContext

    from offbook.contrib.coding.capture import AgentName


# ── offbook mcp ───────────────────────────────────────────────────────────────────────────────────

MCP_TIMEOUT_SECONDS = 60.0
"""To forget for good goes through every file; the client has its own, shorter patience and may cancel."""

BY_HAND = (
    "offbook: waiting for an MCP client on stdin, which starts this by itself: `offbook mcp --help` tells how to add "
    "it to one, Ctrl-C ends it"
)
MCP_EPILOG = """\b
Examples:
  claude mcp add offbook -- offbook mcp
  codex mcp add offbook -- offbook mcp --agent codex
  offbook mcp --session "project x"              what is recorded goes there
  offbook --url https://memory.example:8770 mcp  a provider elsewhere

\b
A client starts this by itself; by hand it only waits for a client on stdin.
Without a provider it starts all the same: each tool then says how to start
one, and works as soon as there is one. Clients that speak HTTP need no
program: give them http://127.0.0.1:8770/mcp and the token.
"""


@click.command("mcp", epilog=MCP_EPILOG)
@click.option(
    "--session", type=UTF8, metavar="S", help="Session meant where a client names none (else one called `mcp`)."
)
@home_option
@url_option
@agent_option
@pass_invocation
def mcp_command(invocation: Invocation, session: str | None) -> None:
    """Serve the memory to an MCP client over stdin and stdout: recall, record, context, expand, pin, forget, status.

    Only the protocol is written to stdout.
    """
    import asyncio
    import signal

    from offbook.api.mcp.asking import DEFAULT_SESSION, load

    load("server")
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # stdin is read in a thread that nothing else can wake
    try:
        if _is_terminal():
            click.echo(BY_HAND, err=True)
        asyncio.run(_serve_mcp(invocation, session or DEFAULT_SESSION))
    finally:
        signal.signal(signal.SIGINT, before)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


async def _serve_mcp(invocation: Invocation, session_id: str) -> None:
    from mcp.server.stdio import stdio_server

    from offbook.api.mcp.server import build_server
    from offbook.client.async_client import AsyncClient

    client = AsyncClient(
        invocation.endpoint,
        token=invocation.token,
        client="mcp",
        timeout_seconds=MCP_TIMEOUT_SECONDS,
        home=invocation.home.folder,
    )
    async with client:
        server = build_server(client.call, agent_id=invocation.agent, session_id=session_id)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


# ── offbook hook ──────────────────────────────────────────────────────────────────────────────────

DELIVERY_SECONDS = 0.5
"""For what waits in the outbox, once the answer is given; and once more for what is under way then."""

HOOK_EPILOG = """\b
Examples:
  offbook connect claude-code        writes the hooks that call this
  offbook hook claude-code < document.json
  offbook hook codex '{"type":"agent-turn-complete","thread-id":"…"}'

\b
Reads the document that the host gives its hooks:
  SessionStart       prints what the agent should have in mind
  UserPromptSubmit   prints what comes to mind for the prompt
  Stop, SubagentStop, PreCompact, SessionEnd
                     record what is new in the session's transcript

\b
Never stops the agent: with any trouble it prints nothing on stdout, a line on
stderr, and ends with 0. What was recorded while no provider ran, and that a
session ended, is delivered by the next hook of that host, whichever it is, or
by `offbook flush`.
"""


@click.command("hook", epilog=HOOK_EPILOG, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("host", type=click.Choice(["claude-code", "codex"]), metavar="claude-code|codex")
@click.argument("given", nargs=-1, metavar="[DOCUMENT]")
@click.option(
    "--deadline",
    "deadline_ms",
    type=click.IntRange(min=1, max=10_000, clamp=True),
    default=1_000,
    show_default=True,
    metavar="MS",
    help="Milliseconds that each question to memory takes at most; the setting turn.deadline bounds a turn, too.",
)
@home_option
@unread_url_option
@agent_option
@pass_invocation
def hook_command(invocation: Invocation, host: str, given: tuple[str, ...], deadline_ms: int) -> None:
    """Answer a hook of a coding agent: capture its session, give it its memory.

    DOCUMENT is what the host tells; it is read from stdin where there is none.
    """
    # Options that this version does not know are among them: a host's file may have been written by a later one.
    document = next((each for each in reversed(given) if each.lstrip().startswith("{")), None)
    if document is None and sys.stdin is not None and sys.stdin.isatty():
        raise click.UsageError(
            "it reads a document of the host's from stdin; `offbook connect` sets the host up for it"
        )
    try:
        _answer_hook(invocation, cast("AgentName", host), document, deadline_ms)
    # Whatever it is: an agent that cannot go on because of its memory is worse than one without.
    except Exception as error:  # noqa: BLE001
        told = " ".join(str(error).split())[:500] or type(error).__name__
        click.echo(f"offbook: hook {host}: {told}", err=True)


def _answer_hook(invocation: Invocation, host: AgentName, given: str | None, deadline_ms: int) -> None:
    from offbook.client.blocking import Client
    from offbook.client.recorder import encoded
    from offbook.contrib.coding.capture import LONGEST_DOCUMENT_BYTES, read_document
    from offbook.contrib.coding.hooks import answer, deliver

    document = read_document(sys.stdin.buffer.read(LONGEST_DOCUMENT_BYTES + 1) if given is None else given)
    home = invocation.home.folder
    client = Client(
        invocation.endpoint,
        agent_id=invocation.agent,
        token=invocation.token,
        client=host,
        timeout_seconds=deadline_ms / 1_000,
        home=home,
    )
    try:
        answered = answer(host, document, client, home, invocation.environ, deadline_ms=deadline_ms)
        if answered is not None:
            sys.stdout.buffer.write(encoded(answered) + b"\n")
            sys.stdout.buffer.flush()
    finally:
        # Also where this hook recorded nothing: what others left takes its chance.
        with suppress(Exception):
            deliver(host, client, home, seconds=DELIVERY_SECONDS)
        client.close(DELIVERY_SECONDS)


# ── offbook proxy ─────────────────────────────────────────────────────────────────────────────────

PROXY_EPILOG = """\b
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


@click.command("proxy", epilog=PROXY_EPILOG)
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
def proxy_command(
    invocation: Invocation,
    upstream: str,
    listen: str,
    window: int | None,
    deadline_ms: int,
    tls_cert: str | None,
    tls_key: str | None,
) -> None:
    """Put memory into the conversations of any OpenAI-compatible client."""
    from offbook.cli.provider import run_loop
    from offbook.client.async_client import AsyncClient
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
    announce = _announce_proxy_json if invocation.is_json else _announce_proxy
    run_loop(
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


def _announce_proxy(base_url: str) -> None:
    _say(f"Offbook's proxy is ready: use {base_url} as the base URL of your client.")


def _announce_proxy_json(base_url: str) -> None:
    print_json({"baseUrl": base_url})
    sys.stdout.flush()


def _say(line: str) -> None:
    try:
        click.echo(line)
        sys.stdout.flush()
    except OSError:
        # Nobody reads our output. The proxy is up all the same, and its log says so.
        return
