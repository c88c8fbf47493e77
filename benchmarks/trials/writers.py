"""Hosts under trial: each sends its messages in order, and sends again what was not acknowledged."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.exchange import Answer, Connection
from benchmarks.trials.requests import Acknowledgement, Planned, Planner
from offbook.model.types import Scope

ANSWER_SECONDS = 30.0
RETRY_SECONDS = 0.02


class Writer:
    """Keeps what it sent, what was acknowledged and what was refused."""

    def __init__(self, planner: Planner, socket: Path) -> None:
        self.planner = planner
        self.sent: list[Planned] = []
        self.acknowledged: list[Acknowledgement] = []
        self.refusals: list[dict[str, Any]] = []
        self.lost_answers = 0
        self.in_flight: Planned | None = None
        self.gives_up = False
        """Leave alone what is not acknowledged by now."""
        self._socket = socket
        self._connection: Connection | None = None

    async def write_until(self, is_over: asyncio.Event) -> None:
        try:
            while not is_over.is_set():
                await self._deliver(self.planner.next())
        finally:
            if self._connection is not None:
                self._connection.close()

    async def _deliver(self, planned: Planned) -> None:
        content = planned.bytes()
        self.sent.append(planned)
        while not self.gives_up:
            answer = await self._answer(planned, content)
            if answer is not None and answer.status == 200:
                self._note(planned, answer)
                return
            if answer is not None:
                self._refused(answer)
            await asyncio.sleep(RETRY_SECONDS)

    async def _answer(self, planned: Planned, content: bytes) -> Answer | None:
        """None where the provider went away; whether the request arrived is then not known."""
        try:
            if self._connection is None:
                self._connection = await Connection.open(self._socket)
            self.in_flight = planned
            return await asyncio.wait_for(self._connection.exchange(content), ANSWER_SECONDS)
        except OSError:
            self.lost_answers += self.in_flight is not None
            self._connection = None
            return None
        finally:
            self.in_flight = None

    def _note(self, planned: Planned, answer: Answer) -> None:
        receipt = answer.json()
        self.acknowledged.append(
            Acknowledgement(
                planned, receipt["accepted"], receipt["duplicates"], receipt["firstSeq"], receipt["lastSeq"]
            )
        )

    def _refused(self, answer: Answer) -> None:
        problem = answer.json()
        self.refusals.append(problem)
        if not problem["retryable"]:
            raise AssertionError(f"{self.planner.writer} was refused for good: {problem}")


def writers_in(
    socket: Path,
    count: int,
    *,
    seed: int,
    name: object = "writer",
    agents: int = 2,
    sessions: int = 2,
    repeated_share: float = 0.0,
) -> list[Writer]:
    """Writers that share sessions, and agents whose sessions have the same names."""
    made = []
    for number in range(count):
        agent, session = number % agents, number // agents % sessions
        scope = Scope(agent_id=f"agent-{agent}", session_id=f"session-{session}")
        planner = Planner(f"{name}-{number}", scope, seed=seed, repeated_share=repeated_share)
        made.append(Writer(planner, socket))
    return made


class Load:
    """Writers at work, until the block ends: those still waiting are given what they wait for, or gives up."""

    def __init__(self, writers: list[Writer]) -> None:
        self.writers = writers
        self._is_over = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(writer.write_until(self._is_over)) for writer in self.writers]

    async def finish(self, *, gives_up: bool = False, seconds: float = 60.0) -> None:
        """No new requests; what is under way is delivered, or given up."""
        self._is_over.set()
        for writer in self.writers:
            writer.gives_up = gives_up
        await asyncio.wait_for(asyncio.gather(*self._tasks), seconds)

    async def abandon(self) -> None:
        for task in self._tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raises what a writer ran into, at once rather than at the end."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    @property
    def acknowledged(self) -> list[Acknowledgement]:
        return [each for writer in self.writers for each in writer.acknowledged]

    @property
    def sent(self) -> list[Planned]:
        return [each for writer in self.writers for each in writer.sent]

    @property
    def refusals(self) -> list[dict[str, Any]]:
        return [each for writer in self.writers for each in writer.refusals]

    @property
    def lost_answers(self) -> int:
        return sum(writer.lost_answers for writer in self.writers)
