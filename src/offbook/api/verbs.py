"""The table of verbs. HTTP, MCP, OpenAPI, the plugin's types, the reference, both Python clients and the plain commands
of the command line are made from it.

A parameter is written twice: in the verb's request, and in the method of the service that `Memory` has under the name
`handler`. A test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from offbook.api import agent_requests as of_agent
from offbook.api import session_requests as of_session
from offbook.api.fields import Request, snake
from offbook.model import answers
from offbook.model.lesson import Lesson, LessonPage
from offbook.model.maintenance import MaintenanceReport
from offbook.model.memory_entry import CrossSearch, Pinned, Recollection, Unlinked
from offbook.model.overview import Activity, EntryList, SessionPage
from offbook.model.receipt import ForgetCheck, Forgot
from offbook.model.record import ExportPage, Imported
from offbook.model.status import AuditReport, Health, IndexStatus, Status
from offbook.model.summary import ClaimedJob, CompressionEstimate, Expansion, Replay, SummaryPage, Swap
from offbook.model.turn import AnchorList, ContinuityState, Enrichment, PreparedTurn, SettingsView, TopicList
from offbook.model.types import CompressedContext, LogPage, Receipt


@dataclass(frozen=True)
class Verb:
    name: str
    """On the wire."""
    request: type[Request]
    answer: Any
    method: str
    """Of both clients."""
    handler: str
    """Of `Memory`: takes the owner, the request's arguments by name, and `by`."""
    result: str | None
    """The one field of the answer that the handler gives and a client's method returns by itself."""
    positional: tuple[str, ...]
    """Fields that a client's method also takes by position, besides those that are required."""

    is_slow: bool
    """It looks through all that was ever said: the answer may be long in coming."""

    def answered(self, result: Any) -> Any:
        """What the handler gave, as the answer on the wire."""
        if self.answer is answers.Done:
            return answers.Done()
        if self.result is None or isinstance(result, self.answer):
            return result
        return self.answer(**{self.result: result})


def verb(
    name: str,
    request: type[Request],
    answer: Any,
    *,
    method: str | None = None,
    handler: str | None = None,
    result: str | None = None,
    positional: tuple[str, ...] = (),
    is_slow: bool = False,
) -> Verb:
    method = method or snake(name.rpartition("/")[2])
    return Verb(name, request, answer, method, handler or method, result, positional, is_slow)


_TABLE = (
    verb("ping", of_session.Ping, Health),
    verb("onMessage", of_session.OnMessage, Receipt),
    verb("getCompressedContext", of_session.GetCompressedContext, CompressedContext),
    verb("swap", of_session.TakeSwap, Swap),
    verb("expand", of_agent.Expand, Expansion, positional=("summary_id",)),
    verb("summaries", of_agent.Summaries, SummaryPage),
    verb("compress", of_agent.Compress, CompressionEstimate, positional=("session_id",)),
    verb("replay", of_session.GetReplay, Replay),
    verb("jobs/claim", of_agent.ClaimJob, ClaimedJob, method="claim_job", result="job", positional=("wait_ms",)),
    verb("jobs/complete", of_agent.CompleteJob, answers.Done, method="complete_job"),
    verb("jobs/fail", of_agent.FailJob, answers.Done, method="fail_job", positional=("reason",)),
    verb("recall", of_session.Recall, Recollection),
    verb("prepareTurn", of_session.PrepareTurn, PreparedTurn),
    verb("enrich", of_session.Enrich, Enrichment),
    verb("topics", of_agent.GetTopics, TopicList, positional=("session_id",)),
    verb("anchors", of_agent.GetAnchors, AnchorList, positional=("session_id",)),
    verb("state", of_agent.GetState, ContinuityState, positional=("session_id",)),
    verb("config", of_agent.GetConfig, SettingsView),
    verb("lessons", of_agent.GetLessons, LessonPage),
    verb("lessons/judge", of_agent.JudgeLesson, Lesson, method="judge_lesson", positional=("text",)),
    verb("pin", of_agent.Pin, Pinned),
    verb("unpin", of_agent.Unpin, Pinned, handler="pin"),
    verb("unlink", of_agent.Unlink, Unlinked, positional=("by_id",)),
    verb("forget", of_agent.Forget, Forgot, result="receipt", is_slow=True),
    verb(
        "forget/verify",
        of_agent.VerifyForgotten,
        ForgetCheck,
        method="verify_forgotten",
        handler="check_receipt",
        is_slow=True,
    ),
    verb("cross", of_agent.Cross, CrossSearch, positional=("enabled",)),
    verb("reindex", of_agent.Reindex, IndexStatus),
    verb("maintain", of_agent.Maintain, MaintenanceReport),
    verb("export", of_agent.Export, ExportPage, positional=("after",)),
    verb("import", of_agent.Import, Imported, method="import_records"),
    verb("hooks/pre-compaction", of_session.PreCompaction, answers.Saved, result="saved"),
    verb("hooks/post-compaction", of_session.PostCompaction, answers.Done, positional=("new_context",)),
    verb("hooks/session-start", of_session.SessionStart, CompressedContext | None, positional=("max_chars",)),
    verb("hooks/session-end", of_session.SessionEnd, answers.Done, positional=("reason",)),
    verb("log", of_session.GetLog, LogPage, positional=("after_seq", "limit", "wait_ms")),
    verb("missing", of_session.GetMissing, answers.Missing, result="missing"),
    verb("sessions", of_agent.GetSessions, SessionPage),
    verb("activity", of_agent.GetActivity, Activity),
    verb("entries", of_agent.GetEntries, EntryList, positional=("entry_ids",)),
    verb("status", of_agent.GetStatus, Status, positional=("agent_id",)),
    verb("audit", of_agent.GetAudit, AuditReport),
)
VERBS: dict[str, Verb] = {each.name: each for each in _TABLE}
