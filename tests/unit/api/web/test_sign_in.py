"""A code opens a session once; a session stands for its token until its time is over."""

from __future__ import annotations

import pytest

from offbook.api.web.sign_in import CODE_SECONDS, MOST_CODES, SESSION_SECONDS, SignIn
from offbook.model.errors import Unauthorized
from offbook.model.home import token_digest
from offbook.model.types import Caller

OWNER, READER = token_digest("owner"), token_digest("reader")
CALLERS = {
    OWNER: Caller(name="owner"),
    READER: Caller(name="token:reader", agents=frozenset({"a"})),
    token_digest("second"): Caller(name="token:second", agents=frozenset({"a"})),
}


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sign_in(clock: Clock) -> SignIn:
    return SignIn(b"key", clock=clock)


@pytest.mark.parametrize(
    ("caller", "digest"),
    [(Caller(name="local"), OWNER), (CALLERS[OWNER], OWNER), (CALLERS[READER], READER)],
)
def test_a_code_opens_what_its_caller_may_open(sign_in: SignIn, caller: Caller, digest: str) -> None:
    session, whose = sign_in.redeem(sign_in.new_code(caller, CALLERS))
    assert whose == digest == sign_in.session_of(session)


def test_a_code_works_once_and_for_a_while(sign_in: SignIn, clock: Clock) -> None:
    code = sign_in.new_code(CALLERS[OWNER], CALLERS)
    sign_in.redeem(code)
    late = sign_in.new_code(CALLERS[OWNER], CALLERS)
    clock.now += CODE_SECONDS + 1
    for each in (code, late, "", "x"):
        with pytest.raises(Unauthorized):
            sign_in.redeem(each)


def test_codes_nobody_redeems_are_let_go(sign_in: SignIn) -> None:
    first, *others = [sign_in.new_code(CALLERS[OWNER], CALLERS) for _ in range(MOST_CODES + 1)]
    sign_in.redeem(others[0])
    with pytest.raises(Unauthorized):
        sign_in.redeem(first)


def test_a_session_ends_with_its_time_and_outlives_a_restart(sign_in: SignIn, clock: Clock) -> None:
    session = sign_in.session(OWNER)
    assert SignIn(b"key", clock=clock).session_of(session) == OWNER
    assert SignIn(b"another", clock=clock).session_of(session) is None
    clock.now += SESSION_SECONDS + 1
    assert sign_in.session_of(session) is None


def test_a_changed_session_is_none(sign_in: SignIn) -> None:
    session = sign_in.session(OWNER)
    for at in range(len("offbook_web_"), len(session), 7):
        other = "A" if session[at] != "A" else "B"
        assert sign_in.session_of(session[:at] + other + session[at + 1 :]) is None
    for broken in ("offbook_web_", "offbook_web_é", "offbook_web_AAAA", session[:-4], "Bearer", ""):
        assert sign_in.session_of(broken) is None
