"""The wheel as it is published, in an environment with its declared dependencies and nothing else."""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest

from offbook.contrib.conformance import CHECKS
from tests.acceptance.daemon import Daemon, assert_problem, bearer, running
from tests.wheel.fresh import CHECKOUT, Fresh, made

pytestmark = pytest.mark.slow

PLUGIN = "offbook/hosts/openclaw/plugin/"
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
EXTRAS = frozenset(PROJECT["optional-dependencies"])
FOR_USERS = EXTRAS - {"dev", "docs"}
OTHER_VERBS = (
    "ping-answers",
    "session-start-gives-the-context",
    "session-end-is-noted",
    "post-compaction-is-noted",
    "pre-compaction-saves-what-is-missing",
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    folder = tmp_path_factory.mktemp("wheel")
    yield made(folder)
    shutil.rmtree(folder)  # pytest would keep three


@pytest.fixture(scope="module")
def daemon(fresh: Fresh) -> Iterator[Daemon]:
    with running(program=fresh.program) as daemon:
        yield daemon


# ── what is in it ─────────────────────────────────────────────────────────────────────────────


def test_all_of_the_package_is_in_it_and_nothing_else(fresh: Fresh) -> None:
    source = fresh.checkout / "src"
    kept = {path.relative_to(source).as_posix() for path in (source / "offbook").rglob("*") if path.is_file()}
    inside = {name for name in fresh.files if ".dist-info/" not in name and not name.startswith(PLUGIN)}
    assert inside == kept
    assert {
        "offbook/py.typed",
        "offbook/log/sql/migrations/0001_record.sql",
        "offbook/log/postgres/migrations/0001_node.sql",
    } <= inside
    assert "offbook/models/data/wordpiece-uncased.txt.gz" in inside


def test_the_plugin_is_in_it_as_its_own_package_would_ship_it(fresh: Fresh) -> None:
    plugin = fresh.checkout / "plugins" / "openclaw"
    shipped = {plugin / "package.json"}
    for name in json.loads((plugin / "package.json").read_text())["files"]:
        shipped |= {plugin / name} if (plugin / name).is_file() else {*(plugin / name).iterdir()}
    inside = {name: content for name, content in fresh.files.items() if name.startswith(PLUGIN)}
    assert inside == {PLUGIN + path.relative_to(plugin).as_posix(): path.read_bytes() for path in shipped}
    for manifest in ("package.json", "openclaw.plugin.json"):
        assert json.loads(inside[PLUGIN + manifest])["version"] == PROJECT["version"]


def test_no_file_says_where_it_was_made(fresh: Fresh) -> None:
    places = [f"{place}/".encode() for place in (CHECKOUT, fresh.folder, Path.home())]
    assert not [name for name, content in fresh.files.items() if any(place in content for place in places)]
    assert not [name for name in fresh.files if name.startswith("/") or ".." in name.split("/")]


def test_the_metadata_says_what_it_needs_and_what_it_may_have(fresh: Fresh) -> None:
    metadata = fresh.metadata
    assert (metadata["Name"], metadata["Version"]) == ("offbook", PROJECT["version"])
    assert (metadata["Requires-Python"], metadata["License-Expression"]) == (">=3.11", "Apache-2.0")
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS
    assert len(fresh.requirements) == len(PROJECT["dependencies"])
    (licence,) = [content for name, content in fresh.files.items() if name.endswith("/licenses/LICENSE")]
    assert licence == (CHECKOUT / "LICENSE").read_bytes()


# ── its modules ───────────────────────────────────────────────────────────────────────────────


def test_every_module_imports_or_says_which_extra_it_needs(fresh: Fresh) -> None:
    script = Path(__file__).with_name("importing.py")
    names = [name for name in fresh.modules() if not name.endswith("__main__")]
    done = fresh.run(fresh.python, "-P", script, text=json.dumps(names))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert Path(told["where"]).is_relative_to(fresh.folder)
    assert not {name: why for name, why in told["refused"].items() if not _is_clear(name, why)}


def _is_clear(name: str, refusal: dict[str, str]) -> bool:
    """What people import says how to install what it lacks. What lies behind that may lack what an extra brings."""
    if name.startswith("offbook.cli"):
        return False
    if refusal["kind"] == "OffbookError":
        return any(f"pip install 'offbook[{extra}]'" in refusal["text"] for extra in FOR_USERS)
    is_for_people = name.rpartition(".")[2].replace("_", "-") in FOR_USERS
    return not is_for_people and _is_brought(refusal["missing"], FOR_USERS)


def test_every_import_is_declared(fresh: Fresh) -> None:
    """What only came along with something else may be gone with its next version."""
    undeclared = {
        (name, imported)
        for name, content in fresh.sources.items()
        for imported in _imported(content)
        if not _is_brought(imported, FOR_USERS)
    }
    assert not undeclared


def _imported(source: bytes) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"offbook"}


@cache
def _owners() -> dict[str, set[str]]:
    """Distributions by the packages they bring, as far as they are installed beside the tests."""
    return {top: {_plain(name) for name in names} for top, names in packages_distributions().items()}


@cache
def _declared(extras: frozenset[str]) -> set[str]:
    """Distributions. An extra may also bring what the one it names is made of."""
    named = {_plain(each) for extra in extras for each in PROJECT["optional-dependencies"][extra]}
    brought = {_plain(each) for name in named for each in _requirements(name)}
    return {_plain(each) for each in PROJECT["dependencies"]} | named | brought


def _is_brought(module: str, extras: frozenset[str]) -> bool:
    top = module.partition(".")[0]
    return bool(_owners().get(top, {_plain(top)}) & _declared(extras))


def _requirements(name: str) -> list[str]:
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


def _plain(requirement: str) -> str:
    """`Foo_bar[x]>=1; …` as `foo-bar`."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_every_extra_is_named_where_it_is_missed(fresh: Fresh) -> None:
    all_of_it = b"\n".join(fresh.sources.values())
    # Where there are several, a table has their names.
    assert not [extra for extra in FOR_USERS if not re.search(rf"offbook\[{extra}\]|\"{extra}\"".encode(), all_of_it)]


# ── its types ─────────────────────────────────────────────────────────────────────────────────

RIGHT = """\
from offbook import AsyncClient, Client, CompressedContext, OffbookError, Receipt


def told(memory: Client) -> str:
    memory.record("chat", ("user", "My cat is called Ada."))
    context: CompressedContext = memory.get_compressed_context("chat", 4_000)
    return context.session_id


async def asked(memory: AsyncClient) -> bool:
    try:
        receipt: Receipt = await memory.on_message("chat", ("user", "Hello."))
    except OffbookError as error:
        return bool(error.detail)
    return receipt.last_seq > 0
"""
WRONG = """\
from offbook import Client


def told(memory: Client) -> int:
    return memory.get_compressed_context("chat", "many").session_id
"""


def test_a_program_of_somebody_else_is_checked_against_it(fresh: Fresh) -> None:
    programs = fresh.folder / "programs"
    programs.mkdir()
    (programs / "right.py").write_text(RIGHT)
    (programs / "wrong.py").write_text(WRONG)
    done = fresh.run(
        Path(sys.executable),
        *("-m", "mypy", "--strict", "--config-file=", "--cache-dir", fresh.folder / "types"),
        *("--python-executable", fresh.python, programs / "right.py", programs / "wrong.py"),
    )
    faults = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert all("wrong.py:5: " in line for line in faults), done.stdout
    assert {line.rpartition("  ")[2] for line in faults} == {"[arg-type]", "[return-value]"}, done.stdout + done.stderr


# ── its commands ──────────────────────────────────────────────────────────────────────────────


def _json(fresh: Fresh, *arguments: str | Path, **environ: str) -> Any:
    done = fresh.offbook(*arguments, "--json", **environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_the_command_is_there(fresh: Fresh) -> None:
    shown = fresh.offbook("--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "offbook serve" in shown.stdout
    assert _json(fresh, "version")["offbook"] == PROJECT["version"]


def test_its_daemon_keeps_the_contract_by_its_own_suite(fresh: Fresh, daemon: Daemon) -> None:
    """The promise that has nearly every verb in it, and the rest of them; `tests/contract` asks for all promises."""
    rest = (f"--check={check.id}" for check in CHECKS if check.id in OTHER_VERBS)
    report = _json(fresh, "conformance", "--home", daemon.home, "--only", "6", *rest)
    asked = {result["check"] for result in report["results"]}
    verbs = [(check.id, verb) for check in CHECKS for verb in check.verbs]
    assert {verb for _, verb in verbs} == {verb for check_id, verb in verbs if check_id in asked}
    assert not [result for result in report["results"] if result["outcome"] == "failed"]
    assert [result for result in report["results"] if result["outcome"] == "passed"]


def test_it_remembers_by_meaning(fresh: Fresh, daemon: Daemon) -> None:
    tried = _json(fresh, "model", "test", "my cat is called Ada", "what is my pet's name?", "the tax form is due")
    near, far = tried["similarities"]
    assert near > far
    home = {"OFFBOOK_HOME": str(daemon.home)}
    assert fresh.offbook("record", "chat", "My cat is called Ada.", **home).returncode == 0
    assert "Ada" in json.dumps(_json(fresh, "recall", "my cat", **home))


def test_the_host_s_setup_finds_the_plugin_in_it(fresh: Fresh) -> None:
    state = fresh.folder / "home" / ".openclaw"
    state.mkdir()
    (state / "openclaw.json").write_text("{}\n")
    planned = _json(fresh, "openclaw", "setup", "--level", "hot-swap", "--memory-slot", "--dry-run")
    folders = [Path(change["after"]) for change in planned["changes"] if ".paths[" in change["path"]]
    assert [folder.name for folder in folders] == ["plugin", "memory-slot"]
    assert all(folder.is_relative_to(fresh.folder / "environment") for folder in folders)
    assert (folders[0] / "dist" / "index.js").is_file()
    assert planned["obstacles"] == []


def test_a_command_without_its_extra_says_how_to_get_it(fresh: Fresh) -> None:
    done = fresh.offbook("mcp")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("offbook: ")
    assert "pip install 'offbook[mcp]'" in line


def test_the_daemon_without_an_extra_says_how_to_get_it(daemon: Daemon) -> None:
    question = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    refused = daemon.send("POST", "/mcp", question, headers | bearer(daemon.token))
    assert "pip install 'offbook[mcp]'" in assert_problem(refused, 404)["detail"]
