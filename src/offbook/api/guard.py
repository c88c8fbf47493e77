"""Who may come in, by token (`origins` has the Host and Origin of a request). Pure decisions over headers.

Over the Unix socket the file's mode (0600) is the authentication, so a token is optional there; one that
is sent is checked all the same, so that a token bound to some agents binds there too. Over TCP every
request needs one, on loopback as well: any web page can reach a loopback port (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from offbook.model.errors import Forbidden, Unauthorized
from offbook.model.home import token_digest
from offbook.model.types import Caller

LOCAL_OWNER = Caller(name="local")
"""Whoever can open the socket file: the owner of the data folder."""


def identify(
    authorization: str | None,
    callers: Callable[[], Mapping[str, Caller]],
    *,
    is_socket: bool,
    session_of: Callable[[str], str | None] = lambda token: None,
) -> Caller:
    """The caller a request comes from. `callers` gives the callers known now, by token digest; `session_of` the digest
    of the token that a session of the web page was opened with."""
    if authorization is None:
        if is_socket:
            return LOCAL_OWNER
        raise Unauthorized("send `Authorization: Bearer <token>`; the token is in the file `token` of the data folder")
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    is_bearer = bool(token) and scheme.lower() == "bearer"
    caller = callers().get(session_of(token) or token_digest(token)) if is_bearer else None
    if caller is None:
        raise Unauthorized(
            "this token is not known or its time is over: read it again from the file `token` of the data folder, or "
            "for the web page run `offbook ui` again"
        )
    return caller


def check_agent(caller: Caller, agent_id: str) -> None:
    if not caller.may_act_for(agent_id):
        raise Forbidden(f"this token is not for the agent {agent_id!r}: use one that is (`offbook token create`)")
