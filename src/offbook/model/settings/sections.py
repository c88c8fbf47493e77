"""The sections of the settings: each field with its type, bounds, default and description."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta

from offbook.model.types import Value

IDENTITY_WORDS = ("who am i", "what am i", "my name", "i am")


CONTRADICTION_WORDS = ("but", "however", "contradict", "conflict")


TENSION_WORDS = ("problem", "issue", "challenge", "confused", "stuck")


Count = Annotated[int, Meta(ge=0)]


Positive = Annotated[int, Meta(ge=1)]


Amount = Annotated[float, Meta(ge=0)]


Share = Annotated[float, Meta(ge=0, le=1)]


Name = Annotated[str, Meta(min_length=1)]


Words = tuple[Name, ...]


class InjectionBudget(Value, frozen=True, rename="upper"):
    l3: Annotated[Count, Meta(description="Tokens for long-term memory.")] = 30_000
    l2: Annotated[Count, Meta(description="Tokens for earlier context.")] = 30_000
    l1: Annotated[Count, Meta(description="Tokens for recent memory.")] = 30_000


class MemoryCompaction(Value, frozen=True):
    strategy: Annotated[Literal["builtin", "hot-swap"], Meta(description="Who compacts: the host, or a hot swap.")] = (
        "builtin"
    )
    threshold: Annotated[Share, Meta(description="Share of the window at which contexts swap.")] = 0.85
    target_size: Annotated[Share, Meta(description="Share of the window that the new context fills.")] = 0.40


class MemoryProvider(Value, frozen=True):
    provider: Annotated[Name, Meta(description="The memory provider that the host talks to.")] = "offbook"
    endpoint: Annotated[Name, Meta(description="Where the host finds the provider.")] = "http://localhost:8770"
    compaction: MemoryCompaction = MemoryCompaction()


class ContextBudget(Value, frozen=True):
    context_budget_ratio: Annotated[Share, Meta(description="Share of the window that continuity may fill.")] = 0.65
    memory_share: Annotated[Share, Meta(description="Share of the window that the memory page may take.")] = 0.06
    recent_turns_always_full: Annotated[Count, Meta(description="Newest turns that are always kept.")] = 5
    recent_turn_char_limit: Annotated[Count, Meta(description="Characters kept of a newest turn.")] = 3000
    mid_turn_char_limit: Annotated[Count, Meta(description="Characters kept of a turn in the middle.")] = 1500
    older_turn_char_limit: Annotated[Count, Meta(description="Characters kept of an older turn.")] = 500


class AnchorKeywords(Value, frozen=True):
    identity: Annotated[Words, Meta(description="Phrases that say who someone is.")] = IDENTITY_WORDS
    contradiction: Annotated[Words, Meta(description="Phrases that contradict.")] = CONTRADICTION_WORDS
    tension: Annotated[Words, Meta(description="Phrases that tell of something unresolved.")] = TENSION_WORDS


class Anchors(Value, frozen=True):
    enabled: Annotated[bool, Meta(description="Keep identity, contradictions and tensions across compaction.")] = True
    max_age: Annotated[timedelta, Meta(description="How long an anchor is fresh.")] = timedelta(hours=2)
    max_count: Annotated[Count, Meta(description="Most anchors kept.")] = 15
    keywords: AnchorKeywords = AnchorKeywords()


class TopicTracking(Value, frozen=True):
    enabled: Annotated[bool, Meta(description="Track what the user keeps returning to.")] = True
    window_size: Annotated[Positive, Meta(description="Newest turns that are looked at.")] = 6
    fixation_threshold: Annotated[Positive, Meta(description="Mentions that make a topic a fixation.")] = 3
    decay_factor: Annotated[Share, Meta(description="What is left of a topic after a turn without it.")] = 0.5
    min_word_length: Annotated[Positive, Meta(description="Letters of the shortest topic.")] = 5


class Compaction(Value, frozen=True):
    threshold: Annotated[
        Share, Meta(description="Share of the window, told with a turn, from which on the next context is made ready.")
    ] = 0.80
    fallback_messages: Annotated[Count, Meta(description="Newest messages kept where compaction fails.")] = 20
    task_aware_compaction: Annotated[
        bool, Meta(description="Carry goals, open matters and what was done in contexts.")
    ] = True


class Archive(Value, frozen=True):
    archive_dir: Annotated[Name, Meta(description="Folder of the daily files.")] = "archive"
    retention_days: Annotated[
        Positive | None,
        Meta(description="Days after which what was said is forgotten for good; null keeps everything."),
    ] = None
    batch_index_delay: Annotated[timedelta, Meta(description="Pause between two batches of indexing.")] = timedelta(
        milliseconds=100
    )


class Embedding(Value, frozen=True):
    model: Annotated[
        Name,
        Meta(
            description="The embedding model; none is no embeddings, local:NAME one that was installed, others but "
            "MiniLM need an endpoint."
        ),
    ] = "Xenova/all-MiniLM-L6-v2"
    dimensions: Annotated[Positive, Meta(description="Length of its vectors.")] = 384
    endpoint: Annotated[
        Name | None, Meta(description="Where other models are: OpenAI-compatible, such as http://127.0.0.1:11434/v1.")
    ] = None
    api_key_variable: Annotated[Name, Meta(description="Environment variable with the key that the endpoint gets.")] = (
        "OPENAI_API_KEY"
    )
    threads: Annotated[Positive, Meta(description="Cores that embedding in the background may use.")] = 1


class Summarizer(Value, frozen=True):
    order: Annotated[
        Words,
        Meta(
            description="Who writes summaries, tried in order: host, local, openai, anthropic, each with a model "
            "of its own after a colon; extractive is always last."
        ),
    ] = ("extractive",)
    endpoint: Annotated[
        Name, Meta(description="Where openai is: anything that speaks its chat completions, with /v1.")
    ] = "http://127.0.0.1:11434/v1"
    api_key_variable: Annotated[Name, Meta(description="Environment variable with the key that openai gets.")] = (
        "OPENAI_API_KEY"
    )
    anthropic_endpoint: Annotated[Name, Meta(description="Where anthropic is.")] = "https://api.anthropic.com"
    anthropic_key_variable: Annotated[
        Name, Meta(description="Environment variable with the key that anthropic gets.")
    ] = "ANTHROPIC_API_KEY"
    context_tokens: Annotated[Positive, Meta(description="The longest prompt that openai and anthropic read.")] = (
        128_000
    )
    timeout: Annotated[
        timedelta,
        Meta(description="How long one answer may take.", extra={"at_least": timedelta(seconds=1)}),
    ] = timedelta(minutes=2)
    attempts: Annotated[Positive, Meta(description="How often an answer is asked for before the next in line is.")] = 3
    max_tokens_per_day: Annotated[Count, Meta(description="Tokens that one of them may read and write a day.")] = (
        5_000_000
    )
    max_dollars_per_day: Annotated[Amount, Meta(description="Dollars that one of them may cost a day.")] = 1.0
    dollars_per_million_input: Annotated[Amount, Meta(description="Price of a million tokens read.")] = 0.0
    dollars_per_million_cached: Annotated[
        Amount, Meta(description="Price of a million tokens read from the provider's prompt cache.")
    ] = 0.0
    dollars_per_million_output: Annotated[Amount, Meta(description="Price of a million tokens written.")] = 0.0
    threads: Annotated[Positive, Meta(description="Cores that the local model may use.")] = 1


class Search(Value, frozen=True):
    recency_half_life_days: Annotated[
        float, Meta(ge=0.001, description="Days in which the boost of a new exchange fades to 1/e.")
    ] = 14.0
    recency_weight: Annotated[Amount, Meta(description="The boost of an exchange of this moment.")] = 0.15
    limit: Annotated[Positive, Meta(description="Candidates looked at before a turn.")] = 30
    keep: Annotated[Positive, Meta(description="Of these, how many come to mind before a turn.")] = 5
    qualifies: Annotated[
        Literal["probability", "similarity"],
        Meta(description="What decides whether something comes to mind: how likely it matters, or its cosine (A2)."),
    ] = "probability"
    min_probability: Annotated[
        Share, Meta(description="Least probability that something matters, for it to come to mind before a turn.")
    ] = 0.12
    fallback: Annotated[
        Literal["gap", "always"],
        Meta(description="When the newest is told for want of more: after a gap, a swap or on resuming; always (A3)."),
    ] = "gap"
    deadline: Annotated[
        timedelta, Meta(description="How long a recall waits for the query's vector before it goes by text alone.")
    ] = timedelta(milliseconds=300)


class Rerank(Value, frozen=True):
    reader: Annotated[
        Name | None,
        Meta(
            description="Who reads what recall found once more where `depth` is deep: host, openai:MODEL or "
            "anthropic:MODEL (as summarizer.… says), endpoint:MODEL, onnx:/path/to/folder; null is nobody."
        ),
    ] = None
    endpoint: Annotated[
        Name | None,
        Meta(
            description="Where endpoint:MODEL is, without /rerank: Jina, Cohere, vLLM, TEI, such as http://127.0.0.1:8000/v1."
        ),
    ] = None
    api_key_variable: Annotated[
        Name, Meta(description="Environment variable with the key that rerank.endpoint gets.")
    ] = "RERANK_API_KEY"
    deadline: Annotated[
        timedelta,
        Meta(
            description="How long a deep recall waits for the reader before it answers in the first order.",
            extra={"at_least": timedelta(milliseconds=100)},
        ),
    ] = timedelta(seconds=20)
    candidates: Annotated[int, Meta(ge=2, le=100, description="How many of the first found are read once more.")] = 50


class SessionSilence(Value, frozen=True):
    interrupted_gap: Annotated[timedelta, Meta(description="Silence that interrupts a session.")] = timedelta(hours=2)
    new_session_gap: Annotated[timedelta, Meta(description="Silence that begins a new session.")] = timedelta(hours=6)


class TokenBudget(Value, frozen=True):
    context_window: Annotated[Positive, Meta(description="Tokens of the model's window.")] = 200_000
    safety_margin_tokens: Annotated[Count, Meta(description="Tokens of the window left alone.")] = 12_000
    budget_share: Annotated[Share, Meta(description="Share of the free window that recall may fill.")] = 0.2
    min_budget_tokens: Annotated[Count, Meta(description="Tokens that recall may always fill.")] = 2000


class TurnSettings(Value, frozen=True):
    deadline: Annotated[
        timedelta,
        Meta(
            description="How long a turn is prepared; what is not there by then is left out, and said.",
            extra={"at_least": timedelta(milliseconds=10)},
        ),
    ] = timedelta(milliseconds=250)


class Ttl(Value, frozen=True):
    base_hours: Annotated[Amount, Meta(description="Hours a chunk stays hot.")] = 6.0
    bump_hours: Annotated[Amount, Meta(description="Hours that each retrieval adds.")] = 2.0
    max_hours: Annotated[Amount, Meta(description="Most hours a chunk that is not pinned stays hot.")] = 48.0


class Server(Value, frozen=True):
    host: Annotated[Name, Meta(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="TCP port; 0 is the Unix socket only.")] = 8770
    tls_cert: Annotated[str | None, Meta(description="Certificate file, for TLS.")] = None
    tls_key: Annotated[str | None, Meta(description="Key file of that certificate.")] = None
    max_request_bytes: Annotated[int, Meta(ge=1024, description="Largest request body.")] = 16_777_216
    max_buffered_bytes: Annotated[
        int, Meta(ge=1024, description="Request bodies held at once; more are to be sent again.")
    ] = 268_435_456
    allowed_hosts: Annotated[Words, Meta(description="Host names we answer to, besides our own.")] = ()
    keep_alive_seconds: Annotated[Count, Meta(description="Seconds an idle connection stays open.")] = 300


class StoreSettings(Value, frozen=True):
    url: Annotated[
        Name | None,
        Meta(description="PostgreSQL in place of the file in the data folder: postgresql://USER@HOST/DATABASE."),
    ] = None
    node_url: Annotated[
        Name | None,
        Meta(description="One of several nodes over the database: the URL at which the others reach this one."),
    ] = None
    lease: Annotated[
        timedelta,
        Meta(
            description="How long a node that is gone keeps the database, or its agents.",
            extra={"at_least": timedelta(seconds=1)},
        ),
    ] = timedelta(seconds=15)
    externalise_chars: Annotated[Positive, Meta(description="Strings longer than this are stored apart.")] = 65_536
    readers: Annotated[int, Meta(ge=1, le=64, description="Connections that read.")] = 2
    max_queued_writes: Annotated[Positive, Meta(description="Writes that may wait; more are refused.")] = 10_000


class Log(Value, frozen=True):
    level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="Least severity that is logged.")
    ] = "info"
    format: Annotated[
        Literal["auto", "json", "console"], Meta(description="Auto: console on a terminal, else JSON.")
    ] = "auto"


class Outbox(Value, frozen=True):
    max_bytes: Annotated[Count, Meta(description="Most bytes a client keeps unsent.")] = 268_435_456


class Wiki(Value, frozen=True):
    enabled: Annotated[
        bool, Meta(description="Write the memory as Markdown to be read, under wiki in the data folder.")
    ] = True
    cold_pages: Annotated[bool, Meta(description="A page of its own for each message that has gone cold.")] = True


class Lessons(Value, frozen=True):
    enabled: Annotated[bool, Meta(description="Distil lasting lessons from what was said.")] = True
    min_confidence: Annotated[Share, Meta(description="Least confidence of a lesson that comes into a turn.")] = 0.6
    max_injected: Annotated[Count, Meta(description="Most lessons that come into a turn's memory section.")] = 40


class Maintenance(Value, frozen=True):
    interval: Annotated[
        timedelta,
        Meta(description="How often the memory is looked after.", extra={"at_least": timedelta(seconds=1)}),
    ] = timedelta(minutes=5)
    own_process: Annotated[
        bool,
        Meta(
            description="Read and embed messages in a process of its own, which ends when there is nothing to do; off, "
            "in threads of the provider."
        ),
    ] = True


class Backup(Value, frozen=True):
    every_hours: Annotated[
        Positive | None, Meta(description="Hours between two backups in the data folder; null makes none.")
    ] = None
    keep: Annotated[Positive, Meta(description="Newest of these backups that are kept.")] = 7


class Encryption(Value, frozen=True):
    plain_copies: Annotated[
        bool,
        Meta(description="Write the wiki and the files of summaries in an encrypted data folder, too, in plain text."),
    ] = False


class Redaction(Value, frozen=True):
    enabled: Annotated[bool, Meta(description="Take secrets out of messages before they are stored.")] = True
    personal_numbers: Annotated[
        bool, Meta(description="Take out payment cards, IBANs and US social security numbers as well.")
    ] = False
