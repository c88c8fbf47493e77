"""Who owns a request: from the agent named, else from the session key, else the default agent."""

from __future__ import annotations

from offbook.model.errors import WrongShape
from offbook.model.types import MAX_AGENT_BYTES, MAX_KEY_BYTES, Scope


def resolve_agent(session_id: str | None, agent_id: str | None, default_agent: str) -> str:
    """`agentId` wins; a key `agent:<agentId>:…` comes next; else the default.

    A name that cannot be an agent's is refused wherever it stands: in the default agent, those whom such names mean
    would read each other's memory.
    """
    if agent_id is not None:
        return checked_key(agent_id, "agentId", MAX_AGENT_BYTES)
    named = agent_in(session_id)
    return default_agent if named is None else checked_key(named, "agentId in sessionId", MAX_AGENT_BYTES)


def agent_in(session_id: str | None) -> str | None:
    """Whom a key `agent:<agentId>:…` names, whether or not that can be an agent; None where it names nobody."""
    if session_id is None or not session_id.startswith("agent:"):
        return None
    named, separator, _ = session_id[len("agent:") :].partition(":")
    return named if named and separator else None


def resolve_scope(session_id: str, agent_id: str | None, default_agent: str) -> Scope:
    checked_key(session_id, "sessionId", MAX_KEY_BYTES)
    return Scope(agent_id=resolve_agent(session_id, agent_id, default_agent), session_id=session_id)


def checked_key(key: str, field: str, max_bytes: int) -> str:
    """Keys are compared, indexed and shown: they must be whole UTF-8, without NUL, and of bounded length."""
    length = checked_text(key, field)
    if not key:
        raise WrongShape(f"`{field}` is empty: give the host's stable key")
    if "\x00" in key:
        raise WrongShape(f"`{field}` holds a NUL character: leave it out")
    if length > max_bytes:
        raise WrongShape(f"`{field}` is {length} bytes long; the limit is {max_bytes}: use a shorter key")
    return key


def checked_session(session_id: str | None) -> str | None:
    return None if session_id is None else checked_key(session_id, "sessionId", MAX_KEY_BYTES)


def checked_text(text: str, field: str) -> int:
    """Its length in bytes. A caller in this process may hand us half of a character."""
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise WrongShape(f"`{field}` holds a lone surrogate at character {error.start}: send valid UTF-8") from None
