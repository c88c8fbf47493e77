"""The memory of an installation: every verb as a method, for whoever is in this process.

Each method is that of the service that does it; `api/verbs` is the table of them. A verb checks what it was given, asks
pure functions what to do, and has the store do it. Whatever reads or writes leaves one audit event, durable before the
answer: nothing is read or written unrecorded. Only a turn, which has a deadline, does not wait for the event beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping

from offbook.api.background import Background
from offbook.api.context_service import ContextService
from offbook.api.event_follower import EventFollower
from offbook.api.followers import Followers
from offbook.api.forgetting import ForgetService
from offbook.api.host_jobs import HostJobs
from offbook.api.lesson_review import LessonReview
from offbook.api.overview import OverviewService
from offbook.api.recall_service import RecallService
from offbook.api.records import RecordTransfer
from offbook.api.session_state import SessionStateService
from offbook.api.sessions import SessionService
from offbook.api.status import StatusService
from offbook.api.turn_builder import TurnBuilder
from offbook.ingest.entries import Intake
from offbook.ingest.scope import resolve_agent, resolve_scope
from offbook.log.reading import LogReader
from offbook.log.store import Blobs, Store
from offbook.model.settings import Settings
from offbook.model.types import Scope
from offbook.projections.runner import Runner


class Memory:
    def __init__(  # noqa: PLR0915  a line a verb
        self,
        store: Store,
        blobs: Blobs,
        settings: Settings,
        *,
        frame_key: bytes,
        background: Background,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        """`origins`: who gave each setting that is not a default."""
        self._store = store
        self._background = background
        self._reader = background.reader
        self._intake = Intake(blobs, settings, frame_key)
        self._followers = Followers()
        self.default_agent = settings.default_agent
        log_reader = LogReader(store, blobs)

        sessions = SessionService(store, settings, background, self._intake, log_reader, self._followers)
        self.on_message = sessions.on_message
        self.log = sessions.log
        self.missing = sessions.missing
        self.session_start = sessions.session_start
        self.session_end = sessions.session_end
        self.pre_compaction = sessions.pre_compaction
        self.post_compaction = sessions.post_compaction

        contexts = ContextService(store, log_reader, background)
        self.get_compressed_context = contexts.get_compressed_context
        self.swap = background.swapping.swap
        self.expand = contexts.expand
        self.summaries = contexts.summaries
        self.compress = contexts.compress
        self.replay = contexts.replay

        jobs = HostJobs(store, background.host, self._followers)
        self.claim_job = jobs.claim
        self.complete_job = jobs.complete
        self.fail_job = jobs.fail

        recall_service = RecallService(store, settings, background)
        self.recall = recall_service.recall
        self.pin = recall_service.pin
        self.unlink = recall_service.unlink
        self.cross = recall_service.cross

        session_state = SessionStateService(store, settings)
        self.topics = session_state.topics
        self.anchors = session_state.anchors
        self.state = session_state.state
        turn_builder = TurnBuilder(store, blobs, settings, background, recall_service, session_state, frame_key)
        self.prepare_turn = turn_builder.prepare
        self.enrich = turn_builder.enrich

        lesson_review = LessonReview(store, background, sessions.take)
        self.lessons = lesson_review.lessons
        self.judge_lesson = lesson_review.judge

        forgetting = ForgetService(store, settings, background.forgetting)
        self.forget = forgetting.forget
        self.verify_forgotten = forgetting.verify_forgotten
        self.forget_receipt = forgetting.forget_receipt
        self.forget_receipts = forgetting.forget_receipts
        self.check_receipt = forgetting.check_receipt

        transfer = RecordTransfer(store, settings, log_reader, self._intake, background, self._followers)
        self.export = transfer.export
        self.import_records = transfer.import_records

        overview = OverviewService(store, settings, background)
        self.sessions = overview.sessions
        self.activity = overview.activity
        self.entries = overview.entries

        status = StatusService(store, settings, background, origins or {})
        self.follow = EventFollower(store, background.runner, self._followers).follow
        self.ping = status.ping
        self.status = status.status
        self.config = status.config
        self.audit = status.audit
        self.reindex = status.reindex
        self.maintain = status.maintain

    def scope(self, session_id: str, agent_id: str | None = None) -> Scope:
        return resolve_scope(session_id, agent_id, self.default_agent)

    def agent(self, agent_id: str | None = None, session_id: str | None = None) -> str:
        return resolve_agent(session_id, agent_id, self.default_agent)

    @property
    def runner(self) -> Runner:
        return self._background.runner

    def stop_waiting(self) -> None:
        """Answer those who wait for a message with what there is: the provider is about to stop."""
        self._followers.stop()
