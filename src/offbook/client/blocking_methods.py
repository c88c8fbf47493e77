"""The methods of `AsyncClient`, for callers that block.

Made by `make docs`. Change what it is made from, not this file.
"""

from __future__ import annotations

from offbook.client.async_client import AsyncClient
from offbook.client.loop_thread import OnLoop, blocking, passed_on


class ClientMethods(OnLoop):
    call = blocking(AsyncClient.call)
    summaries = blocking(AsyncClient.summaries)
    compress = blocking(AsyncClient.compress)
    claim_job = blocking(AsyncClient.claim_job)
    complete_job = blocking(AsyncClient.complete_job)
    fail_job = blocking(AsyncClient.fail_job)
    topics = blocking(AsyncClient.topics)
    anchors = blocking(AsyncClient.anchors)
    state = blocking(AsyncClient.state)
    config = blocking(AsyncClient.config)
    lessons = blocking(AsyncClient.lessons)
    judge_lesson = blocking(AsyncClient.judge_lesson)
    pin = blocking(AsyncClient.pin)
    unpin = blocking(AsyncClient.unpin)
    unlink = blocking(AsyncClient.unlink)
    forget = blocking(AsyncClient.forget)
    cross = blocking(AsyncClient.cross)
    reindex = blocking(AsyncClient.reindex)
    maintain = blocking(AsyncClient.maintain)
    export = blocking(AsyncClient.export)
    import_records = blocking(AsyncClient.import_records)
    sessions = blocking(AsyncClient.sessions)
    activity = blocking(AsyncClient.activity)
    entries = blocking(AsyncClient.entries)
    status = blocking(AsyncClient.status)
    audit = blocking(AsyncClient.audit)
    get_compressed_context = blocking(AsyncClient.get_compressed_context)
    swap = blocking(AsyncClient.swap)
    replay = blocking(AsyncClient.replay)
    recall = blocking(AsyncClient.recall)
    prepare_turn = blocking(AsyncClient.prepare_turn)
    enrich = blocking(AsyncClient.enrich)
    post_compaction = blocking(AsyncClient.post_compaction)
    session_start = blocking(AsyncClient.session_start)
    session_end = blocking(AsyncClient.session_end)
    log = blocking(AsyncClient.log)
    missing = blocking(AsyncClient.missing)
    record = passed_on(AsyncClient.record)
    flush = blocking(AsyncClient.flush)
    settle = blocking(AsyncClient.settle)
    sync = blocking(AsyncClient.sync)
    outbox_status = passed_on(AsyncClient.outbox_status)
    close = blocking(AsyncClient.close)
    ping = blocking(AsyncClient.ping)
    on_message = blocking(AsyncClient.on_message)
    expand = blocking(AsyncClient.expand)
    pre_compaction = blocking(AsyncClient.pre_compaction)
    verify_forgotten = blocking(AsyncClient.verify_forgotten)
    forget_receipts = blocking(AsyncClient.forget_receipts)
