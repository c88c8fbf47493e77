"""The files of the page, as they are built and shipped, and the headers that keep them to themselves."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from offbook.api.messages import Answer, Request
from offbook.model.errors import NotFound

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
GUARDED = (
    b"content-security-policy: %b\r\nx-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n"
    b"cross-origin-opener-policy: same-origin\r\ncross-origin-resource-policy: same-origin\r\n" % POLICY.encode()
)
KINDS = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
}


class WebFile(NamedTuple):
    content: bytes
    packed: bytes
    kind: bytes
    tag: str


@cache
def web_files() -> dict[str, WebFile]:
    """Read once: they are part of the installed package."""
    found = {}
    for path in files("offbook.api.web").joinpath("static").iterdir():
        kind = KINDS.get("." + path.name.rpartition(".")[2])
        if kind is not None:
            content = path.read_bytes()
            tag = f'"{sha256(content).hexdigest()[:20]}"'
            found[path.name] = WebFile(content, gzip.compress(content, 9, mtime=0), kind, tag)
    return found


def file_answer(name: str, request: Request) -> Answer:
    file = web_files().get(name)
    if file is None:
        raise NotFound(f"the page has no file {name!r}: open /ui/")
    headers = GUARDED + b"cache-control: no-cache\r\nvary: accept-encoding\r\netag: %b\r\n" % file.tag.encode()
    if request.header(b"if-none-match") == file.tag:
        return Answer(304, b"", file.kind, headers)
    if "gzip" in (request.header(b"accept-encoding") or ""):
        return Answer(200, file.packed, file.kind, headers + b"content-encoding: gzip\r\n")
    return Answer(200, file.content, file.kind, headers)
