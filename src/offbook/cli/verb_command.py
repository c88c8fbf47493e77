"""Commands that ask a verb and print its answer.

Their options are the fields of the verb's request, and their help what those say of themselves. What is left of such a
command is the answer as a person reads it; `--json` prints it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import click
import msgspec

from offbook.api.fields import LARGEST_INTEGER, snake
from offbook.api.verbs import VERBS
from offbook.cli.options import (
    UTF8,
    Decorated,
    Invocation,
    common_options,
    moment_or_end_of_day,
    pass_invocation,
    selected_agent,
)

Fields = dict[str, Any]
Show = Callable[..., None]
A_TIME = " a day such as 2026-10-03 (its end), or an ISO 8601 time."


def verb_command(
    name: str,
    *,
    epilog: str,
    verb: str | None = None,
    positional: Sequence[str] = (),
    options: Mapping[str, Fields | None] | None = None,
    own: Sequence[Callable[[Any], Any]] = (),
    asking: Callable[[Invocation, Fields], Fields] = lambda _, given: given,
    prints_json: bool = False,
) -> Callable[[Show], click.Command]:
    """Makes a command of the function that shows an answer, which is given it and, by name, the `invocation` and all
    that was said on the command line.

    `positional` are fields that are arguments; `options` says what is otherwise of a field's option, or None where
    there is to be none; `own` are options of no field. `asking` makes of what was said what is sent. With `prints_json`
    the function also prints JSON."""
    asked = VERBS[verb or name]

    def decorated(show: Show) -> click.Command:
        @pass_invocation
        def run(invocation: Invocation, /, **given: Any) -> None:
            from offbook.cli.output import print_json

            sent = asking(invocation, request_fields(invocation, given))
            with invocation.client() as client:
                answer = getattr(client, asked.method)(**{field: sent[field] for field in sent if field in known})
            if invocation.is_json and not prints_json:
                print_json(answer if answer is not None else {"ok": True})
            else:
                show(answer, invocation=invocation, **given)

        function: Any = common_options(run)
        for option in reversed(own):
            function = option(function)
        function = verb_options(asked.name, *positional, **(options or {}))(function)
        for field in reversed(positional):
            function = _argument(field, required=field in required)(function)
        return click.command(name, epilog=epilog, help=show.__doc__)(function)

    known = {snake(field.encode_name) for field in msgspec.structs.fields(asked.request)}
    required = {field.name for field in msgspec.structs.fields(asked.request) if field.required}
    return decorated


def request_fields(invocation: Invocation, fields: Fields) -> Fields:
    """What was given as several words is one text, or a list; an agent is named once."""
    selected_agent(invocation, fields.get("agent_id"))
    return {name: _joined(name, value) if isinstance(value, tuple) else value for name, value in fields.items()}


def _joined(name: str, words: tuple[str, ...]) -> str | list[str] | None:
    return (list(words) or None) if name.endswith("s") else " ".join(words)


def verb_options(verb: str, *left_out: str, **otherwise: Fields | None) -> Callable[[Decorated], Decorated]:
    """An option for each field of the verb's request but those left out and the agent, which every command has."""
    request = VERBS[verb].request
    hints = get_type_hints(request, include_extras=True)

    def decorated(function: Decorated) -> Decorated:
        for field in reversed(msgspec.structs.fields(request)):
            name = snake(field.encode_name)
            changed = otherwise.get(name, {})
            if name != "agent_id" and name not in left_out and changed is not None:
                function = _option(name, field, hints[field.name], changed)(function)
        return function

    return decorated


def _option(name: str, field: Any, hint: Any, changed: Fields) -> Callable[[Decorated], Decorated]:
    attributes = {**_attributes(hint), **({"metavar": "S"} if name == "session_id" else {}), **changed}
    names = attributes.pop("names", ["--" + name.removesuffix("_id").replace("_", "-")])
    if field.required:
        attributes.setdefault("required", True)
    elif field.default not in (None, False):
        attributes = {"default": field.default, "show_default": True, **attributes}
    return click.option(*names, name, **attributes)


def _attributes(hint: Any) -> Fields:
    """What a type says of an option."""
    kind, metas = _bare(hint)
    help_text = next((meta.description for meta in metas if meta.description), None)
    if kind is bool:
        return {"is_flag": True, "help": help_text}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind)), "help": help_text}
    if get_origin(kind) is list:
        return {"type": UTF8, "multiple": True, "metavar": "NAME", "help": help_text}
    if kind is datetime:
        return {
            "type": moment_or_end_of_day,
            "metavar": "WHEN",
            "help": (help_text or "").partition(":")[0] + ":" + A_TIME,
        }
    if kind in (int, float):
        least = next((meta.ge for meta in metas if meta.ge is not None), None)
        most = next((meta.le for meta in metas if meta.le is not None), None)
        most = None if most == LARGEST_INTEGER else most
        number = click.IntRange(least, most) if kind is int else click.FloatRange(least, most)
        return {"type": number, "metavar": "N", "help": help_text}
    return {"type": UTF8, "help": help_text}


def _bare(hint: Any) -> tuple[Any, list[Any]]:
    """A type without its notes and without None, and those notes, the outermost first."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        kind, more = _bare(inner)
        return kind, [*reversed(metas), *more]
    if get_origin(hint) in (Union, UnionType):
        return _bare(next(each for each in get_args(hint) if each is not NoneType))
    return hint, []


def _argument(field: str, *, required: bool) -> Callable[[Decorated], Decorated]:
    if field.endswith("_id"):
        metavar = field.removesuffix("_id").upper()
        return click.argument(field, type=UTF8, required=required, metavar=metavar if required else f"[{metavar}]")
    metavar = f"{field.upper()}…" if required else "[ENTRY]…"
    return click.argument(field, type=UTF8, nargs=-1, required=required, metavar=metavar)
