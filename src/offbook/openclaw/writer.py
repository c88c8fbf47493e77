"""Who writes the memory: one answer, which the plugin's settings and the provider's `summarizer.order` both follow."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from offbook.api.doctor.finding import Finding
from offbook.client.config_files.editing import value_at
from offbook.client.config_files.toml import with_values
from offbook.model.errors import InvalidInput, ModelUnavailable
from offbook.model.settings import Settings
from offbook.model.settings.sources import read_toml
from offbook.model.summary import Usage
from offbook.models.endpoint import Endpoint
from offbook.models.summarizers.available import EXTRACTIVE
from offbook.models.summarizers.remote import Prices, prices_of
from offbook.openclaw.changes import ENTRY
from offbook.projections.summary_writer import expected_usage, lasting_usage

HOST = "host"
ANTHROPIC_HOST = "anthropic.com"
HOST_MODEL = (*ENTRY, "config", "hostModel")


@dataclass(frozen=True)
class Writer:
    """`url` and `model` only of an endpoint."""

    kind: Literal["host", "endpoint", "none"]
    url: str = ""
    model: str = ""

    @property
    def entry(self) -> str:
        """As `summarizer.order` names it."""
        names = {"host": HOST, "none": EXTRACTIVE, "endpoint": f"{self.protocol}:{self.model}"}
        return names[self.kind]

    @property
    def protocol(self) -> str:
        host = urlsplit(self.url).hostname or ""
        return "anthropic" if host == ANTHROPIC_HOST or host.endswith(f".{ANTHROPIC_HOST}") else "openai"


def writer_named(text: str, model: str | None) -> Writer:
    """`host`, `none` or the address of an endpoint with its model. Raises InvalidInput."""
    if text in ("host", "none"):
        if model:
            raise InvalidInput(f"--writer-model goes with an address; --writer {text} has none to ask for")
        return Writer("host" if text == "host" else "none")
    if "://" not in text:
        raise InvalidInput(f"--writer {text!r}: write host, none, or an address such as http://127.0.0.1:11434/v1")
    if not (model or "").strip():
        raise InvalidInput(f"--writer {text}: name the model to ask for there with --writer-model")
    try:
        Endpoint(text, key=None, timeout_seconds=1, setting="--writer", key_setting="--writer").close()
    except ModelUnavailable as error:
        raise InvalidInput(error.detail) from None
    return Writer("endpoint", url=text.rstrip("/"), model=(model or "").strip())


# ── what is there now ──


OWN_MODEL = "the agent's own model, in the background"
NOBODY = "nobody: sentences are quoted, no model is asked"


@dataclass(frozen=True)
class PresentWriter:
    """`is_chosen` is False where nobody was ever asked, or where the two sides do not agree (`is_split`)."""

    told: str
    is_chosen: bool = True
    is_split: bool = False


def present_writer(config: dict[str, Any], settings: Settings) -> PresentWriter:
    """Of the host's configuration and the provider's settings."""
    offered = value_at(config, HOST_MODEL)
    order = settings.summarizer.order or (EXTRACTIVE,)
    kind, _, model = order[0].partition(":")
    if offered is True and HOST not in order:
        return _split("the plugin offers the agent's own model, but summarizer.order does not ask for it")
    if kind == HOST and offered is not True:
        return _split("summarizer.order asks for the agent's own model, but the plugin does not offer it")
    if kind == HOST:
        return PresentWriter(OWN_MODEL)
    if kind == EXTRACTIVE:
        hint = "" if offered is False else "; --writer host lets the agent's own model write it"
        return PresentWriter(NOBODY + hint, is_chosen=offered is False)
    wheres = {"openai": settings.summarizer.endpoint, "anthropic": settings.summarizer.anthropic_endpoint}
    where = f" at {wheres[kind]}" if kind in wheres else ""
    return PresentWriter(f"{kind} {model or settings.model or ''}".rstrip() + where)


def _split(why: str) -> PresentWriter:
    return PresentWriter(
        f"not the agent's own model yet: {why}; --writer host sets both", is_chosen=False, is_split=True
    )


def check_writer(present: PresentWriter, level: str) -> Finding:
    if not present.is_split:
        return Finding(check="writer", level="ok", what=present.told)
    mend = f"offbook openclaw setup --level {level} --writer host (or none)"
    return Finding(check="writer", level="warn", what=present.told, mend=mend)


def chosen_writer(writer: Writer) -> PresentWriter:
    """As it will be."""
    told = {"host": OWN_MODEL, "none": NOBODY, "endpoint": f"{writer.protocol} {writer.model} at {writer.url}"}
    return PresentWriter(told[writer.kind])


# ── the provider's config.toml ──


@dataclass(frozen=True)
class ProviderFile:
    path: Path
    before: str | None
    """None: there is no such file yet."""
    after: str

    @property
    def is_changed(self) -> bool:
        return self.after != (self.before or "")

    def diff(self, *, context: int = 2) -> list[str]:
        """There are no secrets in it: keys come from the environment."""
        old, new = (self.before or "").splitlines(), self.after.splitlines()
        name = self.path.name
        return list(unified_diff(old, new, f"{name} (now)", f"{name} (then)", lineterm="", n=context))


def provider_file(path: Path, writer: Writer) -> ProviderFile:
    """Raises OffbookError, which says what to write by hand where the file cannot be edited."""
    read_toml(path)  # says where it is wrong
    try:
        before = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        before = None
    try:
        after = with_writer(before or "", writer)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error.detail}") from None
    return ProviderFile(path, before, after)


def with_writer(text: str, writer: Writer) -> str:
    """The text of config.toml. What was tried before stays in line behind, so that its summaries can be improved on."""
    known = tomllib.loads(text).get("summarizer", {})
    given = known.get("order") if isinstance(known, dict) else None
    order = [each for each in given if isinstance(each, str)] if isinstance(given, list) else [EXTRACTIVE]
    return with_values(text, "summarizer", _values(writer, order))


def _values(writer: Writer, order: list[str]) -> dict[str, Any]:
    if writer.kind == "none":
        return {} if order[:1] == [EXTRACTIVE] else {"order": [EXTRACTIVE]}
    dropped = {HOST, EXTRACTIVE} | {each for each in order if each.partition(":")[0] == writer.protocol and writer.url}
    behind = [each for each in order if each not in dropped]
    values: dict[str, Any] = {"order": [writer.entry, *behind, EXTRACTIVE]}
    if writer.kind == "endpoint":
        values["endpoint" if writer.protocol == "openai" else "anthropicEndpoint"] = writer.url
    return values


def lines_by_hand(writer: Writer) -> str:
    """For a provider on another machine."""
    return with_values("", "summarizer", _values(writer, []) or {"order": [EXTRACTIVE]}).strip()


def notes_on(writer: Writer, settings: Settings, order_from: str) -> list[str]:
    """What somebody who chose it has to know. `order_from`: who gives `summarizer.order` now."""
    notes = []
    if order_from.startswith(("environment", "flag")):
        notes.append(f"summarizer.order is given by the {order_from}, which wins over config.toml: take it away there")
    if writer.kind == "endpoint":
        given = settings.summarizer
        variable = given.anthropic_key_variable if writer.protocol == "anthropic" else given.api_key_variable
        notes.append(f"if it wants a key, put it into {variable} where `offbook serve` is started")
        if prices_of(given) == Prices():
            notes.append(
                "no price is set (summarizer.dollarsPerMillionInput …): only its tokens are counted and capped"
            )
    return notes


# ── what it costs ──


@dataclass(frozen=True)
class HostModel:
    name: str
    prices: Prices | None


def host_model(config: dict[str, Any]) -> HostModel | None:
    """The model that most agents have, with the price that the host's configuration gives for it."""
    named = value_at(config, ("agents", "defaults", "model"))
    name = named.get("primary") if isinstance(named, dict) else named
    if not isinstance(name, str) or not name:
        return None
    provider, _, model = name.partition("/")
    listed = value_at(config, ("models", "providers", provider, "models"))
    for each in listed if isinstance(listed, list) else ():
        cost = each.get("cost") if isinstance(each, dict) and each.get("id") == model else None
        if isinstance(cost, dict):
            prices = [cost.get(part) for part in ("input", "cacheRead", "output")]
            read, cached, written = (float(part) if isinstance(part, int | float) else 0.0 for part in prices)
            return HostModel(name, Prices(input=read, cached=cached, output=written) if read or written else None)
    return HostModel(name, None)


def foreseen(settings: Settings, waiting: int | None, prices: Prices | None) -> Iterable[str]:
    """What a model that writes would use. `waiting`: summaries that are due; None where the provider does not say."""
    if waiting:
        count = "1 summary" if waiting == 1 else f"{waiting:,} summaries"
        yield f"now, about {count} of what is recorded: {_told(expected_usage(settings, waiting), prices)}"
    said = f"{'then, ' if waiting else ''}for each {settings.chunk_tokens:,} tokens said"
    yield f"{said}: at most {_told(lasting_usage(settings), prices)}"
    yield f"never more than {told_caps(settings)}"


def told_caps(settings: Settings) -> str:
    caps = settings.summarizer
    return f"{caps.max_tokens_per_day:,} tokens and ${caps.max_dollars_per_day:,.2f} a day"


def _told(usage: Usage, prices: Prices | None) -> str:
    fresh = usage.input_tokens - usage.cached_tokens
    told = f"{fresh:,} tokens read, {usage.cached_tokens:,} more from the cache, {usage.output_tokens:,} written"
    if prices is None:
        return told
    dollars = prices.dollars(usage)
    return f"{told}: " + (f"${dollars:,.2f}" if dollars >= 0.01 else "less than $0.01")
