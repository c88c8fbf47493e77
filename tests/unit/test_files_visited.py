"""How many files one call visits: a newcomer who follows it has so many to read.

Counted in every thread, once what is loaded late is loaded and the background is still. `READ` leaves out what lies
behind the `Store` seam (`log/sql`, `log/sqlite`) and the nouns (`model`): who follows a call reads those once, for all of them.
The figures leave room for threads that pass by, and may only fall; they rose once, by what two databases share.
"""

from __future__ import annotations

from pathlib import Path

from offbook.api.memory import Memory
from offbook.model.types import Scope
from tests.unit.api.test_turn_builder import PATIENT
from tests.unit.files_visited import FilesVisited
from tests.unit.small_memory import caught_up, small_memory, talk, user

VISITED = {"onMessage": 28, "recall": 52, "prepareTurn": 92, "forget": 103}
READ = {"onMessage": 17, "recall": 36, "prepareTurn": 64, "forget": 70}


async def measured(memory: Memory, scope: Scope, visited: FilesVisited) -> dict[str, set[str]]:
    with visited.during() as recall:
        assert (await memory.recall(scope, "harbour master")).entries
    with visited.during() as prepare_turn:
        await memory.prepare_turn(scope, "Who is the harbour master?")
    with visited.during() as forget:
        assert (await memory.forget("main", matching="harbour master")).reached.messages
    with visited.during() as on_message:
        await memory.on_message(scope, [user("The harbour master is called Ada.")])
    return {"onMessage": on_message, "recall": recall, "prepareTurn": prepare_turn, "forget": forget}


async def test_files_that_a_call_visits(tmp_path: Path) -> None:
    with FilesVisited() as visited:
        async with small_memory(tmp_path, turn=PATIENT) as memory:  # nothing of a turn goes on behind it
            scope = await talk(memory, 12)
            await memory.on_message(scope, [user("The harbour master is called Ada.")])
            await caught_up(memory)
            await measured(memory, scope, visited)
            await caught_up(memory)
            await memory.maintain("main")
            await memory._background.runner.close()
            found = await measured(memory, scope, visited)
    for name, files in found.items():
        print(f"{name}: {len(files)}", *sorted(files), sep="\n  ")
    read = {
        name: {file for file in files if not file.startswith(("log/sql/", "log/sqlite/", "model/"))}
        for name, files in found.items()
    }
    assert {name: len(files) for name, files in found.items() if len(files) > VISITED[name]} == {}
    assert {name: len(files) for name, files in read.items() if len(files) > READ[name]} == {}
