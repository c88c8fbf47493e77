"""`offbook mcp`: the memory as tools, over stdin and stdout, for the clients that start a program of their own."""

from __future__ import annotations

import sys

import click

from offbook.cli.options import UTF8, Invocation, agent_option, home_option, pass_invocation, url_option

TIMEOUT_SECONDS = 60.0
"""To forget for good goes through every file; the client has its own, shorter patience and may cancel."""

BY_HAND = (
    "offbook: waiting for an MCP client on stdin, which starts this by itself: `offbook mcp --help` tells how to add "
    "it to one, Ctrl-C ends it"
)
EPILOG = """\b
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


@click.command("mcp", epilog=EPILOG)
@click.option(
    "--session", type=UTF8, metavar="S", help="Session meant where a client names none (else one called `mcp`)."
)
@home_option
@url_option
@agent_option
@pass_invocation
def command(invocation: Invocation, session: str | None) -> None:
    """Serve the memory to an MCP client over stdin and stdout: recall, record, context, expand, pin, forget, status.

    Only the protocol is written to stdout.
    """
    import asyncio
    import signal

    from offbook.api.mcp.asking import DEFAULT_SESSION, load

    load("server")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # stdin is read in a thread that nothing else can wake
    if _is_terminal():
        click.echo(BY_HAND, err=True)
    asyncio.run(_serve(invocation, session or DEFAULT_SESSION))


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


async def _serve(invocation: Invocation, session_id: str) -> None:
    from mcp.server.stdio import stdio_server

    from offbook.api.mcp.server import build_server
    from offbook.client.clients import AsyncClient

    client = AsyncClient(
        invocation.endpoint,
        token=invocation.token,
        client="mcp",
        timeout_seconds=TIMEOUT_SECONDS,
        home=invocation.home.folder,
    )
    async with client:
        server = build_server(client.call, agent_id=invocation.agent, session_id=session_id)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
