from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from offbook.model.errors import ModelUnavailable
from offbook.model.summary import Usage
from offbook.models.protocols import Prompt, Written
from offbook.models.summarizers.host import LEASE_SECONDS, PRESENT_SECONDS, HostSummarizer, Job
from offbook.models.tokens import estimate_tokens
from tests.unit.models.chat_server import TEXT, prompt


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def host(clock: Clock) -> HostSummarizer:
    return HostSummarizer(timeout_seconds=10, clock=clock)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as made:
        yield made


def asked(host: HostSummarizer, pool: ThreadPoolExecutor, given: Prompt) -> Future[Written]:
    host.claim(given.agent_id)
    return pool.submit(host.write, given)


def claimed(host: HostSummarizer, agent_id: str = "main") -> Job:
    deadline = time.monotonic() + 120
    while (job := host.claim(agent_id)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return job


def test_work_is_asked_for_and_answered(host: HostSummarizer, pool: ThreadPoolExecutor) -> None:
    running = asked(host, pool, prompt("What happened?"))
    job = claimed(host)
    assert (job.agent_id, job.messages[0].content, job.max_output_tokens) == ("main", "What happened?", 300)
    used = Usage(input_tokens=10, output_tokens=5, dollars=0.25)
    assert host.complete("main", job.id, f"  {TEXT}\n", used)
    assert running.result(30) == Written(text=TEXT, usage=used)
    assert host.claim("main") is None
    assert host.dollars_for(used) == 0.25


def test_without_a_word_on_usage_it_is_estimated(host: HostSummarizer, pool: ThreadPoolExecutor) -> None:
    running = asked(host, pool, prompt("What happened?"))
    host.complete("main", claimed(host).id, TEXT)
    assert running.result(30).usage.output_tokens == estimate_tokens(TEXT)


def test_where_no_host_asks_nobody_waits(host: HostSummarizer, clock: Clock) -> None:
    for _ in range(2):
        started = time.monotonic()
        with pytest.raises(ModelUnavailable, match="no host has asked for work of agent 'main'") as caught:
            host.write(prompt())
        assert time.monotonic() - started < 10
        assert caught.value.retryable
        host.claim("other")
        assert (host.is_present("other"), host.is_present("main")) == (True, False)
        host.claim("main")
        clock.now += PRESENT_SECONDS + 1


def test_a_host_that_waits_is_there(clock: Clock, pool: ThreadPoolExecutor) -> None:
    host = HostSummarizer(timeout_seconds=10)
    waiting = pool.submit(host.claim, "main", 5.0)
    while not host.is_present("main"):
        time.sleep(0.005)
    running = pool.submit(host.write, prompt())
    job = waiting.result(30)
    assert job is not None
    host.complete("main", job.id, TEXT)
    assert running.result(30).text == TEXT
    started = time.monotonic()
    assert host.claim("main", 0.1) is None
    assert 0.1 <= time.monotonic() - started < 20


def test_work_that_was_taken_is_offered_again_after_its_lease(
    host: HostSummarizer, pool: ThreadPoolExecutor, clock: Clock
) -> None:
    running = asked(host, pool, prompt())
    first = claimed(host)
    assert host.claim("main") is None
    clock.now += LEASE_SECONDS
    second = host.claim("main")
    assert second == first
    assert host.complete("main", first.id, TEXT)
    assert running.result(30).text == TEXT


def test_a_lease_ends_while_somebody_still_waits(clock: Clock, pool: ThreadPoolExecutor) -> None:
    for timeout_seconds, lease_seconds in ((120, 60), (20, 10), (600, LEASE_SECONDS)):
        host = HostSummarizer(timeout_seconds=timeout_seconds, clock=clock)
        running = asked(host, pool, prompt())
        first = claimed(host)
        assert first.lease_seconds == lease_seconds
        clock.now += lease_seconds
        assert host.claim("main") == first
        assert host.complete("main", first.id, TEXT)
        assert running.result(30).text == TEXT


def test_an_answer_is_taken_once(host: HostSummarizer, pool: ThreadPoolExecutor) -> None:
    running = asked(host, pool, prompt())
    job = claimed(host)
    assert host.complete("main", job.id, TEXT)
    assert host.complete("main", job.id, "another")
    assert running.result(30).text == TEXT
    assert host.complete("main", job.id, TEXT)
    assert not host.fail("main", job.id, "late")
    assert not host.complete("main", "nothing", TEXT)
    assert not host.fail("main", "nothing", "x")


def test_no_agent_gets_anothers_work(host: HostSummarizer, pool: ThreadPoolExecutor) -> None:
    running = asked(host, pool, prompt("mine"))
    job = claimed(host)
    assert host.claim("other") is None
    assert not host.complete("other", job.id, "forged")
    assert not host.fail("other", job.id, "forged")
    host.complete("main", job.id, TEXT)
    assert running.result(30).text == TEXT


def test_a_failure_is_told(host: HostSummarizer, pool: ThreadPoolExecutor) -> None:
    running = asked(host, pool, prompt())
    assert host.fail("main", claimed(host).id, "quota")
    with pytest.raises(ModelUnavailable, match="quota"):
        running.result(30)


def test_an_answer_that_comes_too_late_is_there_next_time(clock: Clock) -> None:
    host = HostSummarizer(timeout_seconds=0.05, clock=clock)
    host.claim("main")
    with pytest.raises(ModelUnavailable, match=r"summarizer\.timeout") as caught:
        host.write(prompt("slow"))
    assert caught.value.retryable
    assert host.claim("main") is None
    late = HostSummarizer(timeout_seconds=0.5)  # so long that it is claimed on a busy machine, too
    late.claim("main")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(late.write, prompt("slow"))
        job = claimed(late)
        with pytest.raises(ModelUnavailable):
            running.result(30)
    assert late.complete("main", job.id, TEXT)
    assert late.write(prompt("slow")).text == TEXT


def test_a_close_ends_the_waiting(host: HostSummarizer, pool: ThreadPoolExecutor) -> None:
    running = asked(host, pool, prompt())
    claimed(host)
    waiting = pool.submit(host.claim, "main", 30.0)
    host.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        running.result(30)
    assert waiting.result(30) is None
    with pytest.raises(ModelUnavailable, match="closed"):
        host.write(prompt())


def test_many_at_once(pool: ThreadPoolExecutor) -> None:
    host = HostSummarizer(timeout_seconds=20)
    agents = [f"agent-{number}" for number in range(4)]
    stop = threading.Event()

    def work(agent_id: str) -> int:
        done = 0
        while not stop.is_set():
            if job := host.claim(agent_id, 0.05):
                assert job.agent_id == agent_id
                assert host.complete(agent_id, job.id, f"{agent_id}: {job.messages[0].content}")
                done += 1
        return done

    for agent_id in agents:
        host.claim(agent_id)
    workers = [pool.submit(work, agent_id) for agent_id in agents for _ in range(2)]
    writers = {
        (agent_id, number): pool.submit(host.write, prompt(f"job {number}", agent_id=agent_id))
        for number in range(20)
        for agent_id in agents
    }
    for (agent_id, number), running in writers.items():
        assert running.result(20).text == f"{agent_id}: job {number}"
    stop.set()
    assert sum(worker.result(30) for worker in workers) == len(writers)
