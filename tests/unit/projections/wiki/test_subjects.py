"""Pages of people, projects and topics follow what is said: with a real store, on a real disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from offbook.log.blobs import BlobFiles
from offbook.log.sqlite.store import SqliteStore
from offbook.model.receipt import ForgottenSpan
from offbook.model.types import Scope
from tests.unit.projections.conftest import add, places_of
from tests.unit.projections.wiki.reading import broken_links, read
from tests.unit.projections.wiki.test_projection import House, forget, learn, on_day

FIRST, SECOND = (Scope(agent_id="main", session_id=name) for name in ("first", "second"))
PAGE = "people/oksana.md"


@pytest.fixture
def house(store: SqliteStore, blobs: BlobFiles, tmp_path: Path) -> House:
    return House(store, blobs, tmp_path)


async def talk(store: SqliteStore) -> None:
    await add(store, on_day("I hired Oksana and her husband Danylo last week."), scope=FIRST)
    await add(store, on_day("Oksana bakes kumquat cakes for the shop, our best ones.", 1), scope=SECOND)
    await add(store, on_day("I gave Oksana a raise and paid Danylo for the van.", 2), scope=SECOND)


async def test_people_have_pages_that_lead_to_where_it_was_said_and_to_each_other(house: House) -> None:
    await talk(house.store)
    await learn(house.store, "Oksana bakes on Fridays.", "bakes")
    wiki = house.wiki()
    assert (await house.settle(wiki))["subjects"] == 2
    page = read(house.page(PAGE).read_text())
    assert page.headings == ["Oksana", "What was said", "Spoken of together", "Lessons"]
    assert "../sources/session-logs/session-main-2026-03-01.md#s1-1" in page.links
    assert "../people/danylo.md" in page.links
    assert "../lessons/lesson-0001.md" in page.links
    index = read(house.page("index.md").read_text())
    assert index.headings[:3] == ["main", "People", "Lessons"]
    assert any(
        text.startswith("I hired Oksana and her husband Danylo last week: session first") for text in index.texts
    )
    day = read(house.log("2026-03-03").read_text())
    assert day.headings[1].startswith("Session second: Oksana bakes kumquat cakes")
    assert broken_links(house.folder) == []
    before = house.stamps()
    assert await house.settle(wiki) == {}
    assert await house.settle() == {}
    assert house.stamps() == before


async def test_made_anew_they_are_the_same_and_a_persons_fields_stay(house: House) -> None:
    await talk(house.store)
    await house.settle()
    grown = house.pages()
    shutil.rmtree(house.folder)
    shutil.rmtree(house.state)
    await house.settle()
    assert house.pages() == grown
    page = house.page(PAGE)
    page.write_text(page.read_text().replace("kind: person\n", "kind: person\ntags: [bakery]\n"))
    wiki = house.wiki()
    await wiki.rebuild("main")
    await add(house.store, on_day("Now Oksana runs the whole shop for me.", 3), scope=FIRST)
    await house.settle(wiki)
    assert "tags: [bakery]\n" in page.read_text()
    assert "runs the whole shop" in page.read_text()


async def test_of_what_is_forgotten_no_page_says_a_word(house: House) -> None:
    await talk(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    assert "kumquat" in house.page(PAGE).read_text()
    spans = [ForgottenSpan(session_id="second", first_seq=1, last_seq=1)]
    assert await wiki.pages_holding("main", spans) == 2  # the day's, and hers
    await forget(house, (await places_of(house.store))[1:2])
    assert await wiki.forgotten("main", spans, []) == 2
    files = [*house.folder.rglob("*.md"), *house.state.iterdir()]
    assert not [path for path in files if "kumquat" in path.read_text()]
    assert "I gave Oksana a raise" in read(house.log("2026-03-03").read_text()).headings[1]
    after = house.pages()
    shutil.rmtree(house.folder)
    shutil.rmtree(house.state)
    await house.settle()
    assert house.pages() == after


@pytest.mark.parametrize("lost", [True, False])
async def test_one_of_whom_nothing_is_left_has_no_page_and_no_name_anywhere(house: House, lost: bool) -> None:
    await talk(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    if lost:
        shutil.rmtree(house.state)
        wiki = house.wiki()
    await forget(house, await places_of(house.store))
    spans = [ForgottenSpan(session_id=name, first_seq=1, last_seq=2) for name in ("first", "second")]
    await wiki.forgotten("main", spans, [])
    await house.settle(wiki)
    files = [*house.folder.rglob("*.md"), *house.state.iterdir()]
    assert not [path for path in files if "ksana" in path.read_text() or "ksana" in path.name.casefold()]


async def test_a_page_of_somebodys_own_in_that_place_stays(house: House) -> None:
    page = house.page(PAGE)
    page.parent.mkdir(parents=True)
    page.write_text("# My notes on her\n")
    await talk(house.store)
    await house.settle()
    assert page.read_text() == "# My notes on her\n"
    assert house.page("people/danylo.md").is_file()


async def test_what_a_person_wrote_in_a_field_is_forgotten_where_it_says_it(house: House) -> None:
    await talk(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    page = house.page(PAGE)
    was = page.read_text()
    page.write_text(was.replace("kind: person\n", "kind: person\ntags: [plum]\n"))
    assert await wiki.pages_saying("main", lambda text: "plum" in text) == 1
    assert await wiki.pages_saying("main", lambda text: "plum" in text, is_removed=True) == 1
    assert page.read_text() == was


async def test_a_page_that_was_removed_is_missed_and_written_again(house: House) -> None:
    await talk(house.store)
    wiki = house.wiki()
    await house.settle(wiki)
    house.page(PAGE).unlink()
    assert [found.where for found in await wiki.check("main")] == ["wiki page people/oksana"]
    await house.settle(wiki)
    assert house.page(PAGE).is_file()


async def test_another_agents_people_are_not_told_of(house: House) -> None:
    await talk(house.store)
    other = Scope(agent_id="other", session_id="x")
    await add(house.store, on_day("I hired Marlon as a driver last week."), scope=other)
    await add(
        house.store, on_day("Then Marlon lost the keys of our van.", 1), scope=Scope(agent_id="other", session_id="y")
    )
    wiki = house.wiki()
    await house.settle(wiki)
    await house.settle(wiki, "other")
    assert not [path for path in (house.folder / "other").rglob("*.md") if "Oksana" in path.read_text()]
    assert not [path for path in (house.folder / "main").rglob("*.md") if "Marlon" in path.read_text()]
