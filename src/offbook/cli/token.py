"""`offbook token`: who may come in, and for which agents."""

from __future__ import annotations

import click

from offbook.cli.options import UTF8, Invocation, home_option, json_option, offline_options, pass_invocation

EPILOG = """\b
Examples:
  offbook token create laptop --agents main,researcher
  offbook token list
  offbook token revoke laptop
  curl -H "Authorization: Bearer $(offbook token show --reveal)" http://127.0.0.1:8770/v1/ping
"""


@click.group("token", epilog=EPILOG)
def command() -> None:
    """Make, list and revoke access tokens.

    The owner's token, in the data folder, opens everything. A token made here opens what belongs to the
    agents it names. Changes hold at once, also for a provider that runs.
    """


@command.command("create", epilog="\b\nExample:\n  offbook token create laptop --agents main,researcher")
@click.argument("name", type=UTF8)
@click.option("--agents", type=UTF8, required=True, metavar="A,B", help="Agents it is for, separated by commas.")
@offline_options
@pass_invocation
def create(invocation: Invocation, name: str, agents: str) -> None:
    """Make a token for some agents and show it, once."""
    import secrets

    from offbook.cli.output import print_json, printable
    from offbook.ingest.scope import checked_key
    from offbook.model.errors import InvalidInput
    from offbook.model.home import TOKEN_PREFIX, BoundToken, token_digest
    from offbook.model.types import MAX_AGENT_BYTES, now

    home = invocation.home
    named = list(dict.fromkeys(agent.strip() for agent in agents.split(",") if agent.strip()))
    if not named:
        raise click.BadParameter("name at least one agent", param_hint="--agents")
    for agent in named:
        checked_key(agent, "--agents", MAX_AGENT_BYTES)
    if not name.strip() or not name.isprintable():
        raise click.BadParameter("a name has letters in it, and no control characters", param_hint="NAME")
    tokens = home.read_bound_tokens()
    if any(token.name == name for token in tokens):
        raise InvalidInput(f"there is a token {name!r} already: revoke it first (`offbook token revoke {name}`)")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    made = BoundToken(name=name, digest=token_digest(secret), agents=named, created_at=now().isoformat())
    home.prepare()
    home.write_bound_tokens([*tokens, made])
    if invocation.is_json:
        print_json({"name": name, "agents": named, "token": secret})
        return
    click.echo(secret)
    click.echo(
        printable(f"token {name!r} for {', '.join(named)}: keep it now, it is stored nowhere and shown once"), err=True
    )


@command.command("list", epilog="\b\nExample:\n  offbook token list --json")
@offline_options
@pass_invocation
def list_tokens(invocation: Invocation) -> None:
    """List the tokens there are, without the tokens themselves."""
    from datetime import datetime

    from offbook.cli.output import local_time, print_json, table

    tokens = invocation.home.read_bound_tokens()
    if invocation.is_json:
        print_json([{"name": each.name, "agents": each.agents, "createdAt": each.created_at} for each in tokens])
        return
    if not tokens:
        click.echo("no tokens but the owner's (`offbook token show`)")
        return
    table(
        ["name", "agents", "made"],
        [[each.name, ", ".join(each.agents), local_time(datetime.fromisoformat(each.created_at))] for each in tokens],
    )


@command.command("revoke", epilog="\b\nExample:\n  offbook token revoke laptop")
@click.argument("name", type=UTF8)
@offline_options
@pass_invocation
def revoke(invocation: Invocation, name: str) -> None:
    """Make a token worthless, at once."""
    from offbook.cli.output import print_json, printable
    from offbook.model.errors import InvalidInput

    home = invocation.home
    tokens = home.read_bound_tokens()
    left = [token for token in tokens if token.name != name]
    if len(left) == len(tokens):
        raise InvalidInput(f"there is no token {name!r}: `offbook token list` shows those there are")
    home.write_bound_tokens(left)
    if invocation.is_json:
        print_json({"revoked": name})
        return
    click.echo(printable(f"token {name!r} is revoked"))


@command.command("show", epilog="\b\nExamples:\n  offbook token show\n  offbook token show --reveal")
@click.option("--reveal", is_flag=True, help="Print the token itself.")
@home_option
@json_option
@pass_invocation
def show(invocation: Invocation, reveal: bool) -> None:
    """Show where the owner's token is."""
    from offbook.cli.output import print_json
    from offbook.model.errors import InvalidInput

    path = invocation.home.token
    if not path.exists():
        raise InvalidInput(f"there is no token at {path} yet: the first `offbook serve` makes it")
    token = path.read_text().strip() if reveal else None
    if invocation.is_json:
        print_json({"path": str(path)} | ({"token": token} if token else {}))
        return
    click.echo(token or path)
