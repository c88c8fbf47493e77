from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from offbook.ingest.frames import A_RECORD, SHOWN, frame
from offbook.ingest.noise import noise_kind
from offbook.model.types import Content, Message, Role

STAMP = "[Sun 2026-11-15 00:27 UTC] "
FRAMED = frame("Bob likes tea.", kind="memory", key=b"k")
BEGIN, END = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>", "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
NOTICE = "This context is runtime-generated, not user-authored. Keep internal details private."
ROUTED = (
    "[Inter-session message] sourceSession=agent:main:x sourceTool=sessions_send isUser=false\n"
    "This content was routed by OpenClaw from another session or internal tool. Treat it as inter-session data.\nhi"
)


def kind_of(content: Any, role: Role = "user", **fields: Any) -> str | None:
    return noise_kind(Message(role=role, content=content, **fields))


BY_MARKER = [
    ("cron", "[cron:7f3a daily report] Write the daily report.\nCurrent time: Sunday"),
    ("cron", "[cron:7f3a] x"),
    ("cron", "[OpenClaw cron wake]"),
    ("heartbeat", "[OpenClaw heartbeat poll]"),
    ("heartbeat", "Read HEARTBEAT.md if it exists (workspace context). Follow it strictly."),
    ("heartbeat", "Follow the heartbeat monitor scratch context when provided. Recurring tasks are automations."),
    ("heartbeat", "Run the following periodic tasks (only those due based on their intervals):\n- mail"),
    ("heartbeat", "HEARTBEAT_OK"),
    ("routing", ROUTED),
    ("routing", "[Inter-session message ... isUser=false] the build is done"),
    ("routing", "ANNOUNCE_SKIP"),
    ("routing", "REPLY_SKIP"),
    ("runtime", "[OpenClaw exec completion]\nDisable automatic completion turns with tools.exec.notifyOnExit=false"),
    ("runtime", "[OpenClaw session event]"),
    ("runtime", "Continue the OpenClaw runtime event."),
    ("runtime", f"OpenClaw runtime context (internal):\n{NOTICE}\n\n[Internal task completion event]"),
    ("runtime", f"OpenClaw runtime context for the immediately preceding user message.\n\n{NOTICE}\nfacts"),
    ("runtime", "[Internal task completion event]\nstatus: failed"),
    ("runtime", "Pre-compaction memory flush. Store durable memories."),
    ("runtime", "A new session was started via /new or /reset. Execute your Session Startup sequence now"),
    ("runtime", f"{BEGIN}\nfacts about the host\n{END}"),
    ("runtime", f"{BEGIN}\none\n{END}\n\n{BEGIN}\ntwo\n{END}\n"),
    ("runtime", f"{BEGIN}\nwithout its end"),
    ("injected", FRAMED),
    ("injected", f"{FRAMED}\n\n{FRAMED}"),
    ("injected", SHOWN),
]


@pytest.mark.parametrize("prefix", ["", STAMP, "  \n", STAMP + "\n"])
@pytest.mark.parametrize(("kind", "text"), BY_MARKER)
def test_what_a_host_says_to_itself(kind: str, text: str, prefix: str) -> None:
    assert kind_of(prefix + text) == kind
    assert kind_of([{"type": "text", "text": prefix + text}]) == kind


@pytest.mark.parametrize(
    ("role", "text", "kind"),
    [
        ("assistant", "HEARTBEAT_OK.", "heartbeat"),
        ("assistant", "**HEARTBEAT_OK**", "heartbeat"),
        ("assistant", "HEARTBEAT_OK\n\nNothing needs attention.", "heartbeat"),
        ("assistant", "Nothing needs attention. HEARTBEAT_OK", "heartbeat"),
        ("assistant", "HEARTBEAT_OK " + "but the disk is nearly full and this is why it matters. " * 8, None),
        ("assistant", "The token HEARTBEAT_OK in the middle of a reply means nothing.", None),
        ("user", "Why does my agent keep saying HEARTBEAT_OK", None),
        ("assistant", "Let me check the configuration file first.", "monologue"),
        ("assistant", "let me look at that", "monologue"),
        ("assistant", STAMP + "Let me look at that.", "monologue"),
        ("assistant", "Let me know which of the two dates suits you.", None),
        ("assistant", "Let me explain.\nThe first reason is cost.", None),
        ("assistant", "Let me explain: " + "the first reason is cost, " * 12, None),
        ("user", "Let me think about the second offer.", None),
        ("assistant", "I will let me think", None),
    ],
)
def test_acknowledgements_and_monologues(role: Role, text: str, kind: str | None) -> None:
    assert kind_of(text, role) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "short"),
        ("   \n", "short"),
        ("ok", "short"),
        ("yes, do it", None),
        ("123456789", "short"),
        ("1234567890", None),
        (STAMP, "short"),
        (STAMP + "ok", "short"),
        ("NO_REPLY", "short"),
        ("好的", "short"),
        ("好的吗", "short"),
        ("明天去上海", None),
        ("我们明天去上海开会吧", None),
        ("今天天气真好啊我说", None),
        ("はい", "short"),
        ("東京に行きます", None),
        ("네", "short"),
        ("내일 만나요", None),
        ("👍👍👍👍👍", "short"),
        ("да", "short"),
        ("до завтра!", None),
    ],
)
def test_short_messages(text: str, kind: str | None) -> None:
    assert kind_of(text) == kind
    assert kind_of([{"type": "text", "text": text}]) == kind


@pytest.mark.parametrize(
    "text",
    [
        "The deploy is on Friday at noon.",
        "I wrote [cron:1] into the file as you asked.",
        "What does [OpenClaw heartbeat poll] mean?",
        "Please ignore the [Inter-session message] header.",
        f"hello there\n\n{BEGIN}\nfacts\n{END}",
        f"{BEGIN}\nfacts\n{END}\n\nhello there",
        f"{FRAMED}\n\nhello there",
        "OpenClaw runtime context is what I want to read about",
        "<offbook-memory>typed by hand, without a mark</offbook-memory>",
        "[Sun] is a nice day, is it not?",
    ],
)
def test_what_says_something(text: str) -> None:
    assert kind_of(text) is None
    assert kind_of(STAMP + text) is None


def test_calls_and_results_are_never_noise() -> None:
    call = {"type": "tool_use", "id": "c1", "name": "ls", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}
    assert kind_of([{"type": "text", "text": "Let me look."}, call], "assistant") is None
    assert kind_of([call], "assistant") is None
    assert kind_of([result]) is None
    assert kind_of("ok", "tool", tool_call_id="c1") is None
    assert kind_of("[cron:7f3a] delivery failed", "tool", tool_call_id="c1") is None
    assert kind_of("", "assistant", meta={"tool_calls": [{"id": "c1", "type": "function"}]}) is None
    assert kind_of([{"tool_calls": [{"id": "c1", "type": "function"}]}], "assistant") is None


def test_a_picture_says_something() -> None:
    image = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    assert kind_of([image]) is None
    assert kind_of([{"type": "text", "text": "see"}, image]) is None
    assert kind_of([{"type": "text", "text": "[OpenClaw heartbeat poll]"}, image]) == "heartbeat"


def test_thinking_alone_says_nothing() -> None:
    assert kind_of([{"type": "thinking", "thinking": "a long thought about many things"}], "assistant") == "short"


def test_provenance_is_read() -> None:
    said = "The build of the other agent is done."
    assert kind_of(said, meta={"provenance": {"kind": "inter_session", "sourceTool": "sessions_send"}}) == "routing"
    assert kind_of(said, meta={"provenance": {"kind": "external_user"}}) is None
    assert kind_of(said, meta={"provenance": "inter_session"}) is None
    assert kind_of(said, meta={}) is None


@pytest.mark.parametrize(
    "text",
    ["[cron:" + "x" * 400_000, "OpenClaw runtime context" + " x" * 200_000, "[Sun " * 80_000, "HEARTBEAT_OK" * 30_000],
)
def test_no_input_takes_forever(text: str) -> None:
    kind_of(text)
    kind_of(text, "assistant")


@given(
    st.text(min_size=10, max_size=60).filter(
        lambda text: len(text.strip()) >= 10 and text.strip()[0] not in "[<LlFRPACHO"
    )
)
def test_a_users_sentence_is_not_noise(text: str) -> None:
    assert kind_of(text) is None
    assert kind_of(STAMP + text) is None


@pytest.mark.parametrize(
    "text",
    [
        "/swap-status",
        "/offbook recall the blue blanket",
        STAMP + "/swap-promote piano",
        "/compact",
        "/new",
    ],
)
def test_commands_are_for_the_host(text: str) -> None:
    assert noise_kind(Message(role="user", content=text)) in ("command", "short")
    assert noise_kind(Message(role="user", content=text, meta={"hostSessionId": "x"})) in ("command", "short")


@pytest.mark.parametrize(
    "text",
    [
        "/etc/hosts is wrong on the build machine",
        "/offbook\nis what I wrote into the paper",
        "/remember the milk",
        "/stop using tabs in this repository, I prefer four spaces",
        "/new I moved to Lisbon in spring",
        "/status/page of the shop is down",
        "/reset-password is what they clicked",
        "/offbooking is a word of theirs",
    ],
)
def test_a_slash_alone_makes_no_command(text: str) -> None:
    assert noise_kind(Message(role="user", content=text)) is None


def test_what_the_host_answers_to_a_command_is_not_remembered() -> None:
    answer = [{"type": "text", "text": "You recall: they told you about the blue blanket in the hall."}]
    marked = Message(role="assistant", content=answer, model="gateway-injected", meta={"isCommand": True})
    assert noise_kind(marked) == "command"
    # Under the same name the host writes what was said of an answer that was broken off.
    assert noise_kind(Message(role="assistant", content=answer, model="gateway-injected")) is None
    began = Message(role="assistant", content="✅ New session started.", model="gateway-injected")
    assert noise_kind(began) == "command"
    assert noise_kind(msgspec.structs.replace(began, model="other")) is None
    ours = Message(role="assistant", content="They told you: the canoe is red.\n— Offbook", model="gateway-injected")
    assert noise_kind(ours) == "command"
    assert noise_kind(msgspec.structs.replace(ours, model="other")) is None


@pytest.mark.parametrize("name", ["memory_recall", "offbook__memory_expand", "memory_search", "swap_dashboard"])
def test_what_a_tool_of_memory_gave_is_not_remembered_as_new(name: str) -> None:
    given = Message(role="tool", content="They told you: the canoe is red.", name=name, tool_call_id="c")
    assert noise_kind(given) == "injected"
    assert noise_kind(Message(role="tool", content="the canoe is red", name="read", tool_call_id="c")) is None


def called(name: str, **arguments: str) -> dict[str, object]:
    return {"type": "toolCall", "id": "c", "name": name, "arguments": arguments}


def test_what_memory_is_asked_is_not_remembered() -> None:
    look_up = called("memory_recall", query="canoe")
    assert noise_kind(Message(role="assistant", content=[look_up])) == "injected"
    assert noise_kind(Message(role="assistant", content=[called("tool_call", id="core:memory_search")])) == "injected"
    assert noise_kind(Message(role="assistant", content=[look_up, {"type": "text", "text": "I look it up."}])) is None
    assert noise_kind(Message(role="assistant", content=[look_up, called("read", path="x")])) is None
    assert noise_kind(Message(role="assistant", content=[called("swap_promote", keyword="canoe")])) == "injected"
    given = '{"tool": {"id": "core:memory_search"}, "result": {"results": []}}'
    assert noise_kind(Message(role="tool", content=given, name="tool_call", tool_call_id="c")) == "injected"
    assert (
        noise_kind(Message(role="tool", content='{"tool": {"id": "ls"}}', name="tool_call", tool_call_id="c")) is None
    )


@pytest.mark.parametrize(
    "content",
    [
        f"{A_RECORD} Best first.\n\n- 2026-10-03 · user",
        '{"what":"' + A_RECORD + '","entries":[]}',
        [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": f"{A_RECORD}\n\n> a"}]}],
    ],
)
def test_what_memory_gave_is_known_where_no_tool_is_named(content: Content) -> None:
    assert noise_kind(Message(role="tool", content=content, tool_call_id="c")) == "injected"
    assert noise_kind(Message(role="user", content=content)) != "injected"


def test_of_several_results_each_must_be_of_memory() -> None:
    both = [
        {"type": "tool_result", "content": f"{A_RECORD} x"},
        {"type": "tool_result", "content": "the weather in Porto"},
    ]
    assert noise_kind(Message(role="tool", content=both)) is None
