"""A model behind an endpoint, asked with patience: what passes is tried again, what does not is told at once."""

from __future__ import annotations

import random
import re
import threading

from offbook.errors import ModelUnavailable
from offbook.models.endpoint import Answer, Broken, Endpoint

LONGEST_PAUSE_SECONDS = 20.0


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
        what = f"{self._called} {self.url} answered {answer.status}"
        if answer.status in (401, 403):  # without its words, which may quote the key
            return ModelUnavailable(f"{what}: put a key that it takes into the variable {self._key_variable}")
        said = f"{what} for model {self._model!r} ({self._endpoint.without_key(answer.excerpt)})"
        if answer.status in (408, 429) or answer.status >= 500:
            return ModelUnavailable(f"{said}: it may do so again later", retryable=True)
        return ModelUnavailable(f"{said}: mend the settings {self._settings[0]} and {self._settings[1]}")


def checked_key(key: str | None, key_variable: str, key_setting: str) -> str:
    """The name of the key's variable as it may be shown: not the key itself, where somebody wrote that there."""
    name = key_variable if re.fullmatch(r"[A-Z_][A-Z_0-9]*", key_variable) else f"that {key_setting} names"
    if key is not None and not (key.isascii() and key.isprintable() and " " not in key):
        raise ModelUnavailable(f"the variable {name} holds no key, but blanks or foreign letters")
    return name
