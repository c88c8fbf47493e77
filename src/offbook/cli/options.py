"""The options that many commands share. They may stand before or after the command's name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from offbook.client.blocking import Client
    from offbook.client.endpoint import Endpoint
    from offbook.model.home import Home

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
EMPTY = "it is empty: leave the option out, or say what is meant"


@dataclass
class Invocation:
    """What the shared options of this invocation said."""

    home_given: str | None = None
    url_given: str | None = None
    agent_given: str | None = None
    is_json: bool = False

    @property
    def environ(self) -> dict[str, str]:
        """The environment, with what was said on the command line in place of what it says."""
        environ = dict(os.environ)
        if self.home_given is not None:
            environ["OFFBOOK_HOME"] = self.home_given
            # Whoever names a folder means the provider of that folder.
            environ.pop("OFFBOOK_URL", None)
            environ.pop("OFFBOOK_SOCKET", None)
        if self.url_given is not None:
            environ["OFFBOOK_URL"] = self.url_given
        return environ

    @property
    def home(self) -> Home:
        from offbook.model.home import Home, home_folder, home_may_be_shared

        return Home(home_folder(self.environ), may_be_shared=home_may_be_shared(self.environ))

    @property
    def agent(self) -> str | None:
        return self.agent_given or os.environ.get("OFFBOOK_AGENT") or None

    @property
    def endpoint(self) -> Endpoint:
        from offbook.client.endpoint import default_endpoint

        return default_endpoint(self.environ)

    @property
    def token(self) -> str | None:
        from offbook.client.endpoint import default_token

        return default_token(self.endpoint, self.environ)

    def client(self, *, timeout_seconds: float = 10.0) -> Client:
        from offbook.client.blocking import Client

        return Client(
            self.endpoint,
            agent_id=self.agent,
            token=self.token,
            client="cli",
            timeout_seconds=timeout_seconds,
            home=self.home.folder,
        )


def selected_agent(invocation: Invocation, agent: str | None) -> str | None:
    """The agent as an argument or as an option; None: the client's own."""
    if agent is not None and invocation.agent_given not in (None, agent):
        raise click.UsageError(f"which agent is meant, {agent} or {invocation.agent_given}? Leave out one of them")
    return agent


pass_invocation = click.make_pass_decorator(Invocation, ensure=True)


def text(value: str) -> str:
    """Text that can be sent: an argument that is not UTF-8 reaches Python as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise click.BadParameter("not valid UTF-8") from None
    return value


UTF8 = text


def provider_url(value: str) -> str:
    """Where a provider answers, as it was said: only looked at, so that a slip of the keyboard is told as one."""
    from offbook.client.endpoint import Endpoint

    if not value:
        raise click.BadParameter(EMPTY)
    with wrong_where_refused():
        Endpoint.parse(text(value))
    return value


@contextmanager
def wrong_where_refused(option: str | None = None) -> Iterator[None]:
    """What is refused in here stands on the command line, which is wrong then."""
    from offbook.model.errors import InvalidInput, SettingsError

    try:
        yield
    except (InvalidInput, SettingsError) as error:
        raise click.BadParameter(error.detail, param_hint=f"'{option}'" if option else None) from None


def moment(value: str) -> datetime:
    """A time as ISO 8601 has it. A person who names no zone means their own."""
    try:
        return datetime.fromisoformat(value).astimezone()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is not a time such as 2026-01-31T12:00 or 2026-01-31T12:00Z, nor a day such as 2026-01-31"
        ) from None


def moment_or_end_of_day(value: str) -> datetime:
    """As `moment`; a day without a time is all of that day, so its end."""
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return moment(value)
    return moment(datetime.combine(day, time.max).isoformat())


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    # An empty variable in a script would mean the default: another agent's memory, or another folder.
    if value == "":
        raise click.BadParameter(EMPTY, ctx, param)
    if value and param.name is not None:
        setattr(ctx.ensure_object(Invocation), param.name, value)


def _shared(*names: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    return click.option(*names, expose_value=False, callback=_remember, **attributes)


home_option = _shared(
    "--home", "home_given", type=UTF8, metavar="DIR", help="Data folder (else OFFBOOK_HOME, else ~/.offbook)."
)
URL_HELP = "Provider to ask: unix:///path, http://host:port, https://host:port."
url_option = _shared("--url", "url_given", type=provider_url, metavar="URL", help=URL_HELP)
unread_url_option = _shared("--url", "url_given", type=UTF8, metavar="URL", help=URL_HELP)
"""Looked at when it is used, for a command that must not fail for it."""
agent_option = _shared("--agent", "agent_given", type=UTF8, metavar="NAME", help="Agent that is meant.")
json_option = _shared("--json", "is_json", is_flag=True, help="Print JSON and nothing else on stdout.")


def offline_options(function: Decorated) -> Decorated:
    """For commands that look into the data folder themselves."""
    return home_option(json_option(function))


def common_options(function: Decorated) -> Decorated:
    """For commands that ask a provider on behalf of an agent."""
    return home_option(url_option(agent_option(json_option(function))))
