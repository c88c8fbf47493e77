"""What can go wrong, as a tree. The docstring of an error is its title on every surface.

OffbookError
├── InvalidInput            400  the request cannot be read or breaks a rule; names the field
│   ├── WrongShape          422  a field is missing, unknown or of the wrong type
│   └── TooLarge            413  over a limit; names the setting
├── Unauthorized            401  no token, or one we do not know
├── Forbidden               403  a known caller asks for what is not theirs, or a foreign Host/Origin
├── UnknownVerb             404
├── NotFound                404  what was named is not there
├── WrongMethod             405
├── StoreError              500  the store could not do it
│   ├── StoreFull           507  no room on the disk; retry when there is
│   ├── StoreBusy           503  overloaded or closing; retry
│   ├── AgentMoved          503  of several nodes another has the agent; retry
│   ├── StoreReadOnly       500  the folder or file cannot be written
│   ├── StoreCorrupt        500  the file is damaged
│   ├── StoreTooNew         500  written by a newer Offbook
│   ├── StoreOwned          500  another process owns it
│   └── KeyNeeded           500  it is encrypted, and the key is missing or wrong
├── SettingsError           500  a setting is unknown or ill-typed
├── ModelUnavailable        503  no model; what needs it is off
├── WorkerUnavailable       503  the process that reads and embeds is gone; it is started again
└── ProviderError           the client's side of all this
    ├── ProviderUnavailable  nobody answers
    └── ProviderRefused      an answer that is a problem document
"""

from __future__ import annotations

from typing import Any, ClassVar

PROBLEM_TYPE_PREFIX = "urn:offbook:problem:"


class OffbookError(Exception):
    """Offbook could not do this."""

    status: ClassVar[int] = 500
    slug: ClassVar[str] = "internal"
    retryable: bool = False

    def __init__(self, detail: str = "") -> None:
        self.detail = detail or self.title
        super().__init__(self.detail)

    @property
    def title(self) -> str:
        return (type(self).__doc__ or "").strip().split("\n")[0]

    def problem(self) -> dict[str, Any]:
        """The RFC 9457 problem document of this error."""
        return {
            "type": PROBLEM_TYPE_PREFIX + self.slug,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "retryable": self.retryable,
        }


class InvalidInput(OffbookError):
    """The request cannot be understood."""

    status = 400
    slug = "invalid-input"


class WrongShape(InvalidInput):
    """A field of the request is missing, unknown or of the wrong type."""

    status = 422
    slug = "wrong-shape"


class TooLarge(InvalidInput):
    """The request is larger than this provider takes."""

    status = 413
    slug = "too-large"


class Unauthorized(OffbookError):
    """A token is needed, and this one is missing or not known."""

    status = 401
    slug = "unauthorized"


class Forbidden(OffbookError):
    """This caller may not do that."""

    status = 403
    slug = "forbidden"


class UnknownVerb(OffbookError):
    """There is no such verb."""

    status = 404
    slug = "unknown-verb"


class NotFound(OffbookError):
    """There is no such thing here."""

    status = 404
    slug = "not-found"


class WrongMethod(OffbookError):
    """The verb exists, but not with this HTTP method."""

    status = 405
    slug = "wrong-method"


class StoreError(OffbookError):
    """The store could not do this."""

    slug = "store"


class StoreFull(StoreError):
    """There is no room left on the disk; nothing was stored."""

    status = 507
    slug = "store-full"
    retryable = True


class StoreBusy(StoreError):
    """The store is overloaded or closing; nothing was stored."""

    status = 503
    slug = "store-busy"
    retryable = True


class AgentMoved(StoreError):
    """Another node answers for this agent now; nothing was stored."""

    status = 503
    slug = "agent-moved"
    retryable = True


class StoreReadOnly(StoreError):
    """The data folder cannot be written."""

    slug = "store-read-only"


class StoreCorrupt(StoreError):
    """The store is damaged."""

    slug = "store-corrupt"


class LogLost(StoreError):
    """The log is gone, has lost its newest part, or is another one."""

    slug = "log-lost"


class StoreTooNew(StoreError):
    """The store was written by a newer Offbook."""

    slug = "store-too-new"


class StoreOwned(StoreError):
    """Another process owns this data folder."""

    slug = "store-owned"


class KeyNeeded(StoreError):
    """It is encrypted, and the key that opens it is missing or wrong."""

    slug = "key-needed"


class SettingsError(OffbookError):
    """A setting cannot be used."""

    slug = "settings"


class ModelUnavailable(OffbookError):
    """A model is not available; what needs it is off."""

    status = 503
    slug = "model-unavailable"

    def __init__(self, detail: str = "", *, retryable: bool = False) -> None:
        self.retryable = retryable
        super().__init__(detail)


class WorkerUnavailable(OffbookError):
    """The process that reads and embeds ended before it had answered; it is started again."""

    status = 503
    slug = "worker-unavailable"
    retryable = True


class ProviderError(OffbookError):
    """The memory provider did not do this."""

    slug = "provider"


class ProviderUnavailable(ProviderError):
    """No memory provider answers."""

    status = 503
    slug = "provider-unavailable"
    retryable = True


class ProviderRefused(ProviderError):
    """The memory provider answered with a problem."""

    slug = "provider-refused"

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self.retryable = bool(document.get("retryable", False))
        super().__init__(f"{document.get('title', 'refused')} {document.get('detail', '')}".strip())
