"""One value changes; everything else in the file stays as it was written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.client.config_files.editing import MISSING, Edit, Path, applied, edited, parse, value_at

FILE = """{
    // mine
    gateway: { port: 1 }, // inline
    plugins: {
        allow: ["a"],
        entries: {
            a: { enabled: true }, // keep
        },
    },
}
"""


def test_comments_and_layout_stay() -> None:
    new = edited(FILE, [Edit(("plugins", "entries", "b"), {"enabled": True}), Edit(("plugins", "allow", 1), "b")])
    assert new == FILE.replace('["a"]', '["a", "b"]').replace(
        "// keep\n", '// keep\n            "b": {\n                "enabled": true\n            },\n'
    )


def test_what_was_put_is_taken_away_again_to_the_letter() -> None:
    new = edited(FILE, [Edit(("plugins", "slots", "contextEngine"), "b"), Edit(("gateway", "mode"), "local")])
    assert '"contextEngine": "b"' in new
    assert '{ port: 1, "mode": "local" }' in new
    assert edited(new, [Edit(("plugins", "slots"), MISSING), Edit(("gateway", "mode"), MISSING)]) == FILE


def test_the_last_member_takes_its_comma_with_it() -> None:
    text = '{\n  "a": 1,\n  "b": 2\n}\n'
    assert edited(text, [Edit(("b",), MISSING)]) == '{\n  "a": 1\n}\n'
    assert edited(text, [Edit(("a",), MISSING)]) == '{\n  "b": 2\n}\n'
    assert edited('{"a": [1, 2, 3]}', [Edit(("a", 2), MISSING)]) == '{"a": [1, 2]}'
    assert edited('{"a": [1, 2, 3]}', [Edit(("a", 0), MISSING)]) == '{"a": [ 2, 3]}'


def test_a_comment_in_an_empty_object_stays() -> None:
    new = edited("{\n  // nothing yet\n}\n", [Edit(("a",), 1)])
    assert new == '{\n  // nothing yet\n  "a": 1\n}\n'


def test_as_the_host_itself_writes_it() -> None:
    """JSON.stringify(…, null, 2): what we add looks like what is there."""
    config = {"plugins": {"allow": ["a"], "entries": {}}, "meta": {"x": [1, {"y": 2}]}}
    edits = [Edit(("plugins", "entries", "b", "enabled"), True), Edit(("plugins", "load", "paths", 0), "/p")]
    new = edited(json.dumps(config, indent=2), edits)
    assert new == json.dumps(applied(applied(config, edits[0]), edits[1]), indent=2)


def test_one_kind_of_line_end_stays_one_kind() -> None:
    text = FILE.replace("\n", "\r\n")
    edits = [Edit(("plugins", "entries", "b"), {"enabled": True}), Edit(("gateway",), MISSING)]
    assert edited(text, edits) == edited(FILE, edits).replace("\n", "\r\n")
    mixed = FILE.replace("\n", "\r\n", 1)
    assert edited(mixed, [Edit(("gateway", "port"), 2)]) == mixed.replace("port: 1", "port: 2")


def test_missing_is_not_null() -> None:
    assert value_at({"a": None}, ("a",)) is None
    assert value_at({"a": None}, ("a", "b")) is MISSING
    assert value_at({"a": [1]}, ("a", 1)) is MISSING


names = st.text(min_size=1, max_size=4)
configs = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)


def places(config: Any, path: Path = ()) -> list[Path]:
    inner: list[tuple[str | int, Any]] = []
    if isinstance(config, dict):
        inner = list(config.items())
    elif isinstance(config, list):
        inner = list(enumerate(config))
    return [path, *(place for name, value in inner for place in places(value, (*path, name)))]


@given(st.dictionaries(names, configs, max_size=4), st.sampled_from([None, 1, 2, "\t"]), configs, st.data())
def test_whatever_the_file_the_edit_means_what_it_says(
    config: dict[str, Any], indent: int | str | None, value: Any, data: st.DataObject
) -> None:
    text = json.dumps(config, indent=indent)
    path = data.draw(st.sampled_from(places(config)[1:] or [("new",)]))
    holder = value_at(config, path[:-1])
    edit = Edit(path, value)
    if isinstance(holder, list) and data.draw(st.booleans()):
        edit = Edit((*path[:-1], len(holder)), value)
    elif isinstance(holder, dict) and data.draw(st.booleans()):
        edit = Edit((*path[:-1], data.draw(names)), value)
    elif value_at(config, path) is not MISSING and data.draw(st.booleans()):
        edit = Edit(path, MISSING)
    assert parse(edited(text, [edit])).value == applied(config, edit)


def test_a_layout_that_cannot_be_edited_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from offbook.client.config_files import editing
    from offbook.model.errors import InvalidInput

    monkeypatch.setattr(editing, "_put", lambda text, path, value: text)
    with pytest.raises(InvalidInput, match="by hand"):
        edited("{}", [Edit(("a",), 1)])
