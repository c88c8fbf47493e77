"""A model behind an endpoint, asked with patience: what passes is tried again, what does not is told at once."""

from __future__ import annotations

import random
import re
import threading

from offbook.model.errors import ModelUnavailable
from offbook.models.endpoint import Answer, Broken, Endpoint

LONGEST_PAUSE_SECONDS = 20.0
HEARD_BYTES = 400
"""Of a refusal: what it is about stands at its start, and further on perhaps what was sent."""
OF_WHAT_WAS_SENT = frozenset({400, 413, 422})


class Refused(Exception):
    """The cause of a ModelUnavailable: an answer that is none. Its words may quote a conversation or a key, and are
    shown nowhere."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.status = answer.status
        self._heard = answer.body[:HEARD_BYTES]

    def names(self, field: str) -> bool:
        return field.encode() in self._heard


class Remote:
    """`called` is what errors call it, `settings` the names of those that say where it is and which model."""

    def __init__(
        self, endpoint: Endpoint, *, called: str, model: str, settings: tuple[str, str], key_variable: str
    ) -> None:
        self._endpoint = endpoint
        self._called = called
        self._model = model
        self._settings = settings
        self._key_variable = key_variable
        self._closed = threading.Event()

    @property
    def url(self) -> str:
        return self._endpoint.url

    def ask(
        self, body: bytes, *, attempts: int, first_pause_seconds: float, timeout_seconds: float | None = None
    ) -> Answer:
        """An answer of status 200. ModelUnavailable says why there is none, and `retryable` if there may be one."""
        pause = first_pause_seconds
        for attempt in range(1, attempts + 1):
            if self._closed.is_set():
                raise ModelUnavailable(f"{self._called} is closed")
            try:
                answer = self._endpoint.post(body, timeout_seconds=timeout_seconds)
            except Broken as broken:
                failure, asked_pause = self._unreachable(broken), 0.0
            else:
                if answer.status == 200:
                    return answer
                failure, asked_pause = self._refused(answer), answer.retry_after_seconds
            if not failure.retryable or attempt == attempts:
                raise failure
            # Half of it by chance, so that those who were refused together do not come again together.
            spread = pause * random.uniform(0.5, 1.0)  # noqa: S311 - nothing secret
            self._closed.wait(min(max(spread, asked_pause), LONGEST_PAUSE_SECONDS))
            pause *= 2
        raise AssertionError("unreachable")

    def wrong(self, what: str, expected: str) -> ModelUnavailable:
        """For an answer that cannot be right."""
        return ModelUnavailable(
            f"{self._called} {self.url} sent {what}: check that it serves {expected} of {self._model!r}"
        )

    def close(self) -> None:
        """Whoever waits for an answer or for another attempt stops waiting."""
        self._closed.set()
        self._endpoint.close()

    def _unreachable(self, broken: Broken) -> ModelUnavailable:
        if self._closed.is_set():
            return ModelUnavailable(f"{self._called} is closed")
        return ModelUnavailable(
            f"{self._called} {self.url} does not answer ({broken}): start it, or mend the setting {self._settings[0]}",
            retryable=True,
        )

    def _refused(self, answer: Answer) -> ModelUnavailable:
        """Without its words: all agents share a model, and it may quote the conversation of one of them."""
        what = f"{self._called} {self.url} answered {answer.status}"
        is_passing = answer.status in (408, 429) or answer.status >= 500
        if answer.status in (401, 403):
            detail = f"{what}: put a key that it takes into the variable {self._key_variable}"
        elif is_passing:
            detail = f"{what} for model {self._model!r}: it may take it later"
        elif answer.status in OF_WHAT_WAS_SENT:
            detail = (
                f"{what} for model {self._model!r}: it does not take what was sent, or is not what the settings "
                f"{self._settings[0]} and {self._settings[1]} say; its own log tells more"
            )
        else:
            detail = f"{what} for model {self._model!r}: mend the settings {self._settings[0]} and {self._settings[1]}"
        failure = ModelUnavailable(detail, retryable=is_passing)
        failure.__cause__ = Refused(answer)
        return failure


def refusal(error: ModelUnavailable) -> Refused | None:
    return error.__cause__ if isinstance(error.__cause__, Refused) else None


def is_of_what_was_sent(error: ModelUnavailable) -> bool:
    """Whether another prompt may well be taken: this one was too long, or held what a provider does not read."""
    refused = refusal(error)
    return refused is not None and refused.status in OF_WHAT_WAS_SENT


def checked_key(key: str | None, key_variable: str, key_setting: str) -> str:
    """The name of the key's variable as it may be shown: not the key itself, where somebody wrote that there."""
    name = key_variable if re.fullmatch(r"[A-Z_][A-Z_0-9]*", key_variable) else f"that {key_setting} names"
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelUnavailable(f"the variable {name} holds no key, but blanks or foreign letters")
    return name
