"""The JSON documents of a data export: a file, the files of a folder, or the members of the zip as it came.

Nothing is unpacked: a member is read where it lies, by its own name, up to a limit. So a path such as `../x` in a zip
leads nowhere, and a zip that says it is small and is not fills nothing.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import msgspec

from offbook.client.history.conversations import ImportReport
from offbook.client.history.files import ZIP, decoded, files_under, kind_of_file
from offbook.client.recorder import encoded
from offbook.model.files import open_regular

LARGEST_BYTES = 1024 * 1024 * 1024
"""What is decoded whole, of one export together."""
SMALL_BYTES = 64 * 1024 * 1024
LARGEST_RATIO = 100
"""Text packs to a fifth or a tenth. What packs better than this and is not small is no conversation."""
FAULTS = (OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError)
"""RuntimeError: a password is needed. NotImplementedError: a way of packing that Python does not know."""


DAMAGED = "the zip is damaged or was not copied to its end: download or copy it again"
OWNERS = {"mapping": ("ChatGPT", "chatgpt"), "chat_messages": ("Claude", "claude")}
"""Whose a conversation is by the field that it has, and what reads it."""


class Element(NamedTuple):
    """One conversation as it stands in its document, not decoded yet."""

    where: str
    raw: msgspec.Raw | bytes


class FoundElements(NamedTuple):
    elements: list[Element]
    others: list[str]
    """The names of the files beside them."""


def find_elements(path: Path, report: ImportReport, *, give: str) -> FoundElements:
    """Every element of every document of conversations. A file that is named itself is taken whatever its name.
    `give` says what to give where there is no such document."""
    elements: list[Element] = []
    names: list[str] = []
    left = LARGEST_BYTES
    documents = 0
    try:
        for name, member in _members(path, names, report):
            documents += 1
            try:
                with member as source:
                    data = source.read(left + 1)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                report.cannot_read(name, f"{DAMAGED} ({error})")
                continue
            except FAULTS as error:
                report.cannot_read(name, f"cannot be read: {error}")
                continue
            if len(data) > left:
                report.cannot_read(
                    name, f"more than {LARGEST_BYTES:,} bytes with those before it: give its files one by one"
                )
                break
            left -= len(data)
            elements += _elements(data, name, report)
        if not documents:
            report.cannot_read(str(path), f"holds no conversations.json: {give}")
    except _TooDense as error:
        report.cannot_read(str(error), f"packed more than {LARGEST_RATIO} times: no export looks like this; unpack it")
    except _NoExport as error:
        report.cannot_read(str(path), f"{error}: {give}")
    except zipfile.BadZipFile as error:
        report.cannot_read(str(path), f"{DAMAGED} ({error})")
    except FAULTS as error:
        report.cannot_read(str(path), f"cannot be read: {error}")
    return FoundElements(elements, names)


def heads(
    path: Path, elements: Sequence[Element], *, field: str, kind: type, report: ImportReport, give: str
) -> Iterator[tuple[Element, dict[str, Any]]]:
    """Each conversation decoded: those that have what a conversation has, a `field` of this kind. Those of another
    program are told once, and so is a file of which nothing is a conversation."""
    whose, _ = OWNERS[field]
    others: Counter[str] = Counter()
    misfits: list[str] = []
    is_any = False
    for element in elements:
        try:
            head = decoded(element.raw)
        except (ValueError, RecursionError) as error:
            report.cannot_read(element.where, f"cannot be read: {error}")
            continue
        other = next((name for name in OWNERS if isinstance(head, dict) and name != field and name in head), None)
        if isinstance(head, dict) and isinstance(head.get(field), kind):
            is_any = True
            yield element, head
        elif other is not None:
            others[other] += 1
        else:
            misfits.append(element.where)
    for name, count in others.items():
        owner, command = OWNERS[name]
        what, them = ("a conversation", "it") if count == 1 else (f"{count:,} conversations", "them")
        report.cannot_read(str(path), f"holds {what} of {owner}: `offbook import {command}` reads {them}")
    if misfits and not is_any and not others:
        report.cannot_read(str(path), f"nothing in it is a conversation of {whose}, none has `{field}`: {give}")
        return
    for where in misfits:
        report.cannot_read(where, f"not a conversation of {whose}: it has no `{field}`")


class _TooDense(Exception):
    pass


class _NoExport(Exception):
    pass


def _is_wanted(name: str) -> bool:
    """`conversations.json`, or one of several: `conversations-001.json`."""
    number = name.removeprefix("conversations").removesuffix(".json")
    return name == f"conversations{number}.json" and (not number or (number[0] == "-" and number[1:].isdecimal()))


def _is_zip(path: Path) -> bool:
    with open_regular(path) as source:
        return zipfile.is_zipfile(source)


def _members(path: Path, others: list[str], report: ImportReport) -> Iterator[tuple[str, IO[bytes]]]:
    if path.is_dir():
        for each in sorted(files_under(path, report)):
            if each.is_file():
                if _is_wanted(each.name):
                    yield each.relative_to(path).as_posix(), open_regular(each)
                else:
                    others.append(each.name)
    elif _is_zip(path):
        with zipfile.ZipFile(path) as archive:
            yield from _packed(archive, others)
    elif (kind := kind_of_file(path)) == ZIP:
        raise zipfile.BadZipFile("its end is missing")
    elif kind:
        raise _NoExport(f"is {kind}")
    else:
        yield path.name, open_regular(path)


def _packed(archive: zipfile.ZipFile, others: list[str]) -> Iterator[tuple[str, IO[bytes]]]:
    for member in sorted(archive.infolist(), key=lambda each: each.filename):
        name = PurePosixPath(member.filename).name
        if member.is_dir() or member.filename.startswith("__MACOSX/"):
            continue
        if not _is_wanted(name):
            others.append(name)
            continue
        if member.file_size > max(SMALL_BYTES, LARGEST_RATIO * member.compress_size):
            raise _TooDense(member.filename)
        yield member.filename, archive.open(member)


def _elements(data: bytes, where: str, report: ImportReport) -> list[Element]:
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        report.cannot_read(where, "is empty: copy or export it again")
        return []
    try:
        raws: list[msgspec.Raw] = _listed(data)
    except (ValueError, RecursionError):
        return _salvaged(data, where, report)
    return [Element(f"{where} #{number}", raw) for number, raw in enumerate(raws, 1)]


def _listed(data: bytes) -> list[msgspec.Raw]:
    """A list, an object that holds one as `conversations`, or a single conversation."""
    if data.lstrip()[:1] != b"{":
        return msgspec.json.decode(data, type=list[msgspec.Raw])
    fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    if "conversations" in fields:
        return msgspec.json.decode(fields["conversations"], type=list[msgspec.Raw])
    return [msgspec.Raw(data)]


def _salvaged(data: bytes, where: str, report: ImportReport) -> list[Element]:
    """What a strict reader refuses: half characters and NaN are taken, and what stands before a damage."""
    text = data.decode(errors="replace")
    decoder = json.JSONDecoder()
    elements: list[Element] = []
    position = len(text) - len(text.lstrip())
    is_list = text[position : position + 1] == "["
    position += is_list
    while True:
        position = _skipped(text, position)
        if is_list and text[position : position + 1] == "]":
            return elements
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            detail = f"not JSON from character {position:,} on, damaged or cut off: {error}; copy or export it again"
            report.cannot_read(f"{where} after #{len(elements)}", detail)
            return elements
        elements.append(Element(f"{where} #{len(elements) + 1}", encoded(value)))
        if not is_list:
            return elements


def _skipped(text: str, position: int) -> int:
    while text[position : position + 1] and text[position] in " \t\r\n,":
        position += 1
    return position
