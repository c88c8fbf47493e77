"""The suite passes against the daemon over both of its listeners, and every check of it can fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from offbook.cli.conformance import conformance_command
from offbook.cli.root import root
from offbook.client.endpoint import Endpoint
from offbook.contrib.conformance import CHECKS, PROMISES, run
from offbook.contrib.conformance.check import Check
from offbook.model.errors import ProviderRefused, ProviderUnavailable
from tests.acceptance.daemon import WITHOUT_MODEL, Daemon, running
from tests.contract.broken_provider import TOKEN, BrokenProvider, serving

CHECK = {check.id: check for check in CHECKS}

DEFECTS = {
    # 0: shapes
    "does not know its backlog": "ping-answers",
    "has no tiers": "status-answers",
    "knows every session": "session-start-gives-the-context",
    "cannot end a session": "session-end-is-noted",
    "stores the new context": "post-compaction-is-noted",
    "recalls without tiers": "an-entry-is-whole",
    "scores in words": "an-entry-is-whole",
    "spans beyond the session": "an-entry-is-whole",
    "recalls all there is": "the-best-come-first-and-no-more-than-asked-for",
    "gives the worst first": "the-best-come-first-and-no-more-than-asked-for",
    "finds less in depth": "a-deep-recall-only-orders-anew",
    "recalls whatever the scope": "a-recall-keeps-to-its-scope",
    "recalls this session only": "a-recall-keeps-to-its-scope",
    "knows the future": "a-recall-as-of-then-knows-nothing-later",
    "forgets pins": "a-pin-holds-until-it-is-taken-off",
    "keeps pins for ever": "a-pin-holds-until-it-is-taken-off",
    "swaps too early": "a-swap-waits-until-it-is-due",
    "gives no reason": "a-swap-waits-until-it-is-due",
    "hands over what it did not swap": "a-swap-waits-until-it-is-due",
    "cannot be forced": "a-swap-can-be-forced",
    "has no intent": "a-prepared-turn-is-whole",
    "counts in fractions": "a-prepared-turn-is-whole",
    "minds without tiers": "a-prepared-turn-is-whole",
    "needs a prompt": "any-turn-can-be-prepared",
    "prepares known sessions only": "any-turn-can-be-prepared",
    "forgets its budget": "a-turn-keeps-its-budget",
    "has one budget for every window": "a-turn-keeps-its-budget",
    "counts fewer tokens than it takes": "a-turn-keeps-its-budget",
    "gives the best first": "what-comes-to-mind-is-in-order-of-time",
    "lets a quote end its frame": "no-message-ends-the-frame-around-it",
    "gives no receipt": "a-forgetting-has-its-receipt",
    "forgets nothing": "what-is-forgotten-is-in-no-answer",
    "expands what it forgot": "what-is-forgotten-is-in-no-answer",
    "minds its old memory": "what-is-forgotten-is-in-no-answer",
    "forgets in a dry run": "a-dry-run-of-forgetting-touches-nothing",
    "gives the oldest session first": "sessions-come-newest-first-and-page-by-page",
    "knows no next page": "sessions-come-newest-first-and-page-by-page",
    "counts a day twice": "days-count-every-message-once",
    "mixes up entries": "entries-are-found-by-their-ids",
    # 1: the record
    "counts from zero": "receipts-count",
    "reverses a batch": "a-batch-keeps-its-order",
    "doubles retries": "a-retry-is-a-duplicate",
    "looks for ids before the batch only": "an-id-occurs-once-in-a-batch",
    "is slow between looking and storing": "retries-at-once-store-once",
    "overwrites": "an-id-is-never-overwritten",
    "merges equal messages": "equal-messages-are-all-kept",
    "loses one in a hundred": "messages-at-once-are-all-kept",
    "shows the context of before": "an-acknowledged-message-is-there-at-once",
    "saves everything again": "pre-compaction-saves-what-is-missing",
    "does not know messages by their place": "pre-compaction-knows-messages-without-ids",
    "saves known sessions only": "pre-compaction-saves-a-session-nobody-knows",
    "recalls later": "a-message-can-be-recalled-at-once",
    "recalls ASCII only": "a-message-can-be-recalled-in-any-script",
    "normalises text": "every-text-comes-back",
    "cuts at NUL": "every-text-comes-back",
    "drops unknown blocks": "every-block-comes-back",
    "keeps results as text": "every-tool-result-comes-back",
    "drops meta": "every-field-comes-back",
    "cuts long texts": "a-large-text-is-kept-or-refused",
    "expands to plain text": "a-span-is-expanded-word-for-word",
    "expands backwards": "a-span-is-expanded-word-for-word",
    "gives all pages at once": "an-expansion-goes-on-page-by-page",
    "ends after a page": "an-expansion-goes-on-page-by-page",
    "expands to half of it": "what-a-context-leaves-out-can-be-expanded",
    "minds it a message later": "what-was-told-comes-to-mind-at-once",
    "shows what it does not tell": "what-was-told-comes-to-mind-at-once",
    "tells what it does not show": "what-was-told-comes-to-mind-at-once",
    "records prompts": "a-turn-records-nothing",
    "takes back what it showed": "what-was-shown-is-no-memory-of-its-own",
    "forgets the neighbours": "forgetting-leaves-the-rest",
    "takes back what it forgot": "a-forgotten-message-does-not-come-back",
    # 2: contexts
    "goes a little over": "every-limit-is-kept-and-covers-all",
    "leaves a gap": "every-limit-is-kept-and-covers-all",
    "overlaps": "every-limit-is-kept-and-covers-all",
    "counts bytes": "long-messages-keep-the-limit-too",
    "always shows the newest": "long-messages-keep-the-limit-too",
    "cuts between call and result": "no-cut-parts-a-result-from-its-call",
    "shows results nobody asked for": "a-result-whose-call-never-came-is-no-result",
    "paraphrases the newest": "the-newest-message-is-shown-as-it-came",
    "summarises where there is room": "with-room-for-all-everything-is-shown",
    "reads the clock": "the-same-log-gives-the-same-bytes",
    "hands on signed reasoning": "no-signature-of-reasoning-is-handed-to-another-model",
    "stays at its generation": "a-swap-hands-over-a-shorter-context",
    "does not know what was in use": "a-swap-hands-over-a-shorter-context",
    "swaps in nearly everything": "a-swap-hands-over-a-shorter-context",
    "hands over everything": "a-swap-hands-over-a-shorter-context",
    "leaves out the newest": "a-swap-hands-over-a-shorter-context",
    "hands over results without calls": "a-swap-hands-over-a-shorter-context",
    "accounts for half of it": "the-ledger-accounts-for-every-message",
    "forgets calls whole": "forgetting-keeps-results-with-their-calls",
    # 4: isolation
    "shares sessions": "nothing-reaches-another-agent",
    "shows the newest of all agents": "nothing-reaches-another-agent",
    "keeps one chain for all": "counts-and-chains-are-each-agents-own",
    "counts all agents": "counts-and-chains-are-each-agents-own",
    "ignores the agent in the key": "the-session-key-names-the-agent",
    "takes a long name for nobody": "a-name-too-long-is-not-somebody-elses",
    "recalls from all agents": "recall-never-reaches-another-agent",
    "pins for anybody": "a-pin-never-reaches-another-agent",
    "hands over what others said": "a-swap-never-reaches-another-agent",
    "counts the swaps of all agents": "a-swap-never-reaches-another-agent",
    "expands for anybody": "no-expansion-reaches-another-agent",
    "minds what others said": "a-turn-never-reaches-another-agent",
    "lists the sessions of all": "nothing-at-a-glance-reaches-another-agent",
    "names entries to anybody": "nothing-at-a-glance-reaches-another-agent",
    "forgets for anybody": "forgetting-never-reaches-another-agent",
    # 5: stability
    "counts other sessions in": "what-happens-elsewhere-changes-nothing",
    "counts retries in": "a-retry-changes-nothing",
    "swaps again and again": "a-swap-asked-for-again-is-the-same",
    "swaps once only": "a-swap-asked-for-again-is-the-same",
    "drops what it swapped out": "a-swap-takes-nothing-from-the-session",
    "writes its memory anew": "the-memory-section-stays-the-same",
    # 6: the audit
    "records no reads": "every-verb-leaves-one-event",
    "records no status": "every-verb-leaves-one-event",
    "records twice": "every-verb-leaves-one-event",
    "records no audits": "an-audit-is-audited",
    "records no recalls": "recall-and-pins-leave-one-event-each",
    "pins twice": "recall-and-pins-leave-one-event-each",
    "records no unlinking": "an-unlink-without-a-link-changes-nothing-and-leaves-one-event",
    "unlinks what was never linked": "an-unlink-without-a-link-changes-nothing-and-leaves-one-event",
    "records two events of a swap": "every-swap-leaves-one-event",
    "records no expansions": "every-expansion-leaves-one-event",
    "records no turns": "every-prepared-turn-leaves-one-event",
    "records a turn twice": "every-prepared-turn-leaves-one-event",
    "records no glance": "a-glance-leaves-one-event",
    "records no forgetting": "every-forgetting-leaves-one-event",
    "tells its audit what it forgot": "every-forgetting-leaves-one-event",
    "does not link": "the-chain-verifies",
    "skips a number": "the-chain-verifies",
    "cannot verify": "the-chain-verifies",
    "rewrites events": "the-chain-only-grows",
    "ignores the limit": "an-audit-can-be-narrowed",
    "gives the oldest": "an-audit-can-be-narrowed",
    "answers with no session's events": "an-audit-can-be-narrowed",
    # 7: what only one check can see; what every refusal must be is below
    "stores what it refuses": "a-wrong-type-is-refused",
    "pins what it refuses": "a-wrong-pin-is-refused",
    "swaps what it refuses": "a-wrong-swap-is-refused",
    "forgets what it refuses": "a-wrong-forgetting-is-refused",
    "names no field": "an-unknown-field-is-refused-by-name",
    "takes keys of any length": "session-keys-have-a-length",
    "calls everything a bad request": "a-wrong-token-is-refused",
}
REFUSAL_CHECKS = [check.id for check in CHECKS if check.promise == 7]
REFUSAL_DEFECTS = [
    "takes anything",
    "fails over bad input",
    "refuses in plain text",
    "says another status",
    "does not say whether to retry",
]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """Without a model: with its own, it conforms in the tests of the wheel."""
    with running(WITHOUT_MODEL) as started:
        yield started


async def outcomes(provider: BrokenProvider, *checks: Check) -> dict[str, tuple[str, str]]:
    async with serving(provider) as endpoint:
        report = await run(endpoint, TOKEN, checks=checks or CHECKS)
    return {result.check: (result.outcome, result.detail) for result in report.results}


# ── ours ──


async def test_the_daemon_conforms_over_its_socket(daemon: Daemon) -> None:
    # Every verb, and every refusal. The rest is beneath the listeners, and checked over TCP.
    report = await run(daemon.socket_endpoint, checks=[check for check in CHECKS if check.promise in (6, 7)])
    assert not report.with_outcome("failed")
    missing = {result.check for result in report.with_outcome("not offered")}
    assert missing <= {"a-wrong-token-is-refused", "a-web-page-is-refused"}


async def test_the_daemon_refuses_a_wrong_token_on_its_socket_too(daemon: Daemon) -> None:
    report = await run(daemon.socket_endpoint, daemon.token, checks=[CHECK["a-wrong-token-is-refused"]])
    assert [result.outcome for result in report.results] == ["passed"]


# ── any other ──


async def test_another_provider_conforms() -> None:
    found = await outcomes(BrokenProvider())
    assert {check: detail for check, (outcome, detail) in found.items() if outcome != "passed"} == {}


async def test_a_provider_may_do_without_frames_and_may_be_late_where_it_says_so() -> None:
    of_turns = [check for check in CHECKS if "prepareTurn" in check.verbs]
    late = await outcomes(BrokenProvider("is late now and then, and says so"), *of_turns)
    assert {check: detail for check, (outcome, detail) in late.items() if outcome != "passed"} == {}
    bare = await outcomes(BrokenProvider("has no frames"), *of_turns)
    rest = {check: (outcome, detail) for check, (outcome, detail) in bare.items() if outcome != "passed"}
    assert rest == {
        "no-message-ends-the-frame-around-it": (
            "not offered",
            "no section ends with a line of its own, which could be forged",
        )
    }


@pytest.mark.parametrize(("defect", "check_id"), DEFECTS.items())
async def test_a_defect_is_caught(defect: str, check_id: str) -> None:
    outcome, detail = (await outcomes(BrokenProvider(defect), CHECK[check_id]))[check_id]
    assert outcome == "failed"
    # Caught for what it is, and not because the answer could not be read; only a missing field is just that.
    is_unreadable = detail.startswith("expected an answer of the contract")
    assert is_unreadable == (defect == "does not know its backlog"), detail


@pytest.mark.parametrize("defect", REFUSAL_DEFECTS)
async def test_every_refusal_is_looked_at(defect: str) -> None:
    found = await outcomes(BrokenProvider(defect), *(CHECK[check_id] for check_id in REFUSAL_CHECKS))
    assert {check_id for check_id, (outcome, _) in found.items() if outcome != "failed"} == set()


def test_every_check_is_known_to_fail() -> None:
    assert {check.id for check in CHECKS} == {*DEFECTS.values(), *REFUSAL_CHECKS}


# ── the suite itself ──


def test_every_check_says_what_holds() -> None:
    assert len(CHECK) == len(CHECKS)
    for check in CHECKS:
        assert check.holds.endswith("."), check.id
        assert check.promise in PROMISES, check.id


async def test_an_optional_verb_may_be_missing_a_required_one_not() -> None:
    provider = BrokenProvider()
    provider.missing = frozenset({"recall", "status"})
    found = await outcomes(provider, CHECK["a-message-can-be-recalled-at-once"], CHECK["status-answers"])
    assert found == {
        "a-message-can-be-recalled-at-once": ("not offered", "recall is not offered"),
        "status-answers": ("failed", "status is not offered"),
    }


async def test_a_provider_that_talks_nonsense_fails_and_breaks_nothing() -> None:
    found = await outcomes(BrokenProvider("talks nonsense"))
    assert {outcome for outcome, _ in found.values()} == {"failed"}


async def test_nobody_there_and_a_wrong_token_are_told_at_once(daemon: Daemon) -> None:
    with pytest.raises(ProviderUnavailable):
        await run(Endpoint.parse("http://127.0.0.1:1"))
    with pytest.raises(ProviderRefused):
        await run(daemon.tcp_endpoint, "wrong")


# ── the command ──


@pytest.mark.timeout(900)  # half a minute of work, more beside others
def test_the_daemon_conforms_over_tcp_and_the_command_tells_by_promise(daemon: Daemon) -> None:
    result = CliRunner().invoke(conformance_command, [str(daemon.tcp_endpoint), "--token", daemon.token])
    assert result.exit_code == 0, result.output
    assert "✓" in result.output
    assert all(promise in result.output for promise in PROMISES.values())
    assert "0 failed, 0 not offered" in result.output


def test_the_command_tells_what_failed_and_exits_with_1(daemon: Daemon) -> None:
    bad = CliRunner().invoke(
        conformance_command, [f"{daemon.tcp_endpoint}/elsewhere", "--token", daemon.token, "--only", "6"]
    )
    assert bad.exit_code == 1
    assert "✗" in bad.output
    assert "audit is not offered" in bad.output
    assert "Promise 6 is not kept, in " in bad.output


def test_the_command_prints_json_and_nothing_else(daemon: Daemon) -> None:
    import msgspec

    chosen = ["--only", "6", "--check", "receipts-count"]
    result = CliRunner().invoke(conformance_command, [str(daemon.socket_endpoint), "--json", *chosen])
    report = msgspec.json.decode(result.stdout)
    assert {each["outcome"] for each in report["results"]} == {"passed"}
    assert {each["promise"] for each in report["results"]} == {1, 6}
    assert report["isConforming"] is True
    assert report["agentId"].startswith("conformance-")


def test_the_command_says_which_token_it_needs(daemon: Daemon) -> None:
    for given in (["--token", "another"], []):
        refused = CliRunner(env={"OFFBOOK_HOME": "nowhere"}).invoke(
            root, ["conformance", *given, str(daemon.tcp_endpoint)]
        )
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "--token" in refused.stderr


def test_a_token_for_some_agents_is_no_verdict(daemon: Daemon) -> None:
    environ = {"OFFBOOK_HOME": str(daemon.home)}
    made = CliRunner(env=environ).invoke(root, ["token", "create", "bound", "--agents", "main"])
    arguments = ["conformance", str(daemon.tcp_endpoint), "--token", made.stdout.strip()]
    told = CliRunner(env=environ).invoke(root, arguments)
    assert (told.exit_code, told.stdout, len(told.stderr.splitlines())) == (1, "", 1)
    assert "for some agents only" in told.stderr
    assert "--token" in told.stderr
