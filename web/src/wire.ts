// Made by `make docs` from the wire's shapes. Change those, not this file.

export type Verb =
  | "ping"
  | "onMessage"
  | "getCompressedContext"
  | "swap"
  | "expand"
  | "summaries"
  | "compress"
  | "replay"
  | "jobs/claim"
  | "jobs/complete"
  | "jobs/fail"
  | "recall"
  | "prepareTurn"
  | "enrich"
  | "topics"
  | "anchors"
  | "state"
  | "config"
  | "lessons"
  | "lessons/judge"
  | "pin"
  | "unpin"
  | "unlink"
  | "forget"
  | "forget/verify"
  | "cross"
  | "reindex"
  | "maintain"
  | "export"
  | "import"
  | "hooks/pre-compaction"
  | "hooks/post-compaction"
  | "hooks/session-start"
  | "hooks/session-end"
  | "log"
  | "missing"
  | "sessions"
  | "activity"
  | "entries"
  | "status"
  | "audit";

/** What each verb takes. */
export interface Requests {
  ping: Ping;
  onMessage: OnMessage;
  getCompressedContext: GetCompressedContext;
  swap: TakeSwap;
  expand: Expand;
  summaries: Summaries;
  compress: Compress;
  replay: GetReplay;
  "jobs/claim": ClaimJob;
  "jobs/complete": CompleteJob;
  "jobs/fail": FailJob;
  recall: Recall;
  prepareTurn: PrepareTurn;
  enrich: Enrich;
  topics: GetTopics;
  anchors: GetAnchors;
  state: GetState;
  config: GetConfig;
  lessons: GetLessons;
  "lessons/judge": JudgeLesson;
  pin: Pin;
  unpin: Unpin;
  unlink: Unlink;
  forget: Forget;
  "forget/verify": VerifyForgotten;
  cross: Cross;
  reindex: Reindex;
  maintain: Maintain;
  export: Export;
  import: Import;
  "hooks/pre-compaction": PreCompaction;
  "hooks/post-compaction": PostCompaction;
  "hooks/session-start": SessionStart;
  "hooks/session-end": SessionEnd;
  log: GetLog;
  missing: GetMissing;
  sessions: GetSessions;
  activity: GetActivity;
  entries: GetEntries;
  status: GetStatus;
  audit: GetAudit;
}

/** What each verb gives. */
export interface Answers {
  ping: Health;
  onMessage: Receipt;
  getCompressedContext: CompressedContext;
  swap: Swap;
  expand: Expansion;
  summaries: SummaryPage;
  compress: CompressionEstimate;
  replay: Replay;
  "jobs/claim": ClaimedJob;
  "jobs/complete": Done;
  "jobs/fail": Done;
  recall: Recollection;
  prepareTurn: PreparedTurn;
  enrich: Enrichment;
  topics: TopicList;
  anchors: AnchorList;
  state: ContinuityState;
  config: SettingsView;
  lessons: LessonPage;
  "lessons/judge": Lesson;
  pin: Pinned;
  unpin: Pinned;
  unlink: Unlinked;
  forget: Forgot;
  "forget/verify": ForgetCheck;
  cross: CrossSearch;
  reindex: IndexStatus;
  maintain: MaintenanceReport;
  export: ExportPage;
  import: Imported;
  "hooks/pre-compaction": Saved;
  "hooks/post-compaction": Done;
  "hooks/session-start": CompressedContext | null;
  "hooks/session-end": Done;
  log: LogPage;
  missing: Missing;
  sessions: SessionPage;
  activity: Activity;
  entries: EntryList;
  status: Status;
  audit: AuditReport;
}

/** Check whether the provider answers. */
export type Ping = Record<string, never>;

/** `backlog` counts derived work still to do; 0 when all is caught up. */
export interface Health {
  ok: boolean;
  latencyMs: number;
  version: string;
  store: string;
  model: string | null;
  backlog: number;
}

/** Record one `message`, or several `messages` in order. The answer comes after the write is durable. */
export type OnMessage = {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  message?: Message | null;
  messages?: Message[] | null;
} & (
  | { message: Message; }
  | { messages: Message[]; }
);

/** One message, as a host sends it and as it comes back. */
export interface Message {
  role: "assistant" | "system" | "tool" | "user";
  content: string | Record<string, unknown>[];
  /** The host's own id, at most 512 bytes: the idempotency key. */
  id?: string | null;
  ts?: string | null;
  name?: string | null;
  toolCallId?: string | null;
  model?: string | null;
  origin?: string | null;
  meta?: Record<string, unknown> | null;
}

/** What became of the messages of one `onMessage`. Sent after the write is durable. */
export interface Receipt {
  accepted: number;
  duplicates: number;
  firstSeq: number;
  lastSeq: number;
  conflicts?: Conflict[];
}

/** A message id that is already stored with other content. The stored one stays. */
export interface Conflict {
  id: string;
  seq: number;
}

/** The session in at most `maxChars` characters, newest verbatim. */
export interface GetCompressedContext {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** The context is at most this many characters. */
  maxChars: number;
}

/** A whole session in at most `max_chars` characters. `parts` partition 1 … `covers.last_seq`. */
export interface CompressedContext {
  sessionId: string;
  agentId: string;
  generation: number;
  text: string;
  messages: Message[];
  chars: number;
  maxChars: number;
  covers: Span;
  parts: Part[];
  builtAt: string;
}

export interface Span {
  firstSeq: number;
  lastSeq: number;
}

/** One piece of a context and the stretch of the log it stands for. */
export interface Part {
  kind: "summary" | "verbatim";
  firstSeq: number;
  lastSeq: number;
  chars: number;
  id?: string | null;
  level?: number | null;
}

/**
 * Replace the context in use by the compressed one that is kept ready, once `usedTokens` of `contextWindow` reach
 * the threshold, or as soon as the host asks with `targetTokens`, which says what the new one may take. A swap frees
 * at least a quarter of `contextWindow`, or it does not happen and `reason` says why; with `force` it happens wherever
 * the new context is the smaller one. Without new messages, asking again gives the same answer.
 *
 * Tokens are those that the model's provider counts; `tokenRatio` says how many of them are one of our estimate. What
 * instructions and tools take is left out of `usedTokens` and `contextWindow` by a host that knows it.
 */
export interface TakeSwap {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Tokens in use in the agent's context now. */
  usedTokens: number;
  /** Tokens the agent's model takes. */
  contextWindow: number;
  /** Swap even if it is not due yet, or frees less than a quarter. Default: false. */
  force?: boolean;
  /** Tokens the new context may take. */
  targetTokens?: number | null;
  /** Tokens of the model's provider for each that we estimate. */
  tokenRatio?: number | null;
  /** Of the context in use. One that was handed over since, and not taken, is given again. */
  generation?: number | null;
}

/** What became of a request to swap. Where nothing was swapped, `reason` says why and `messages` is empty. */
export interface Swap {
  swapped: boolean;
  reason: string;
  generation: number;
  messages: Message[];
  tokensBefore: number;
  tokensAfter: number;
  ledger: Ledger;
  tookMs: number;
}

/** What a swap kept and what it left out. */
export interface Ledger {
  verbatim?: Part[];
  summaries?: Part[];
  dropped?: Dropped[];
  /** Default: 0. */
  droppedCount?: number;
  state?: StateRecord[];
}

/** A particular that is no longer in the text, and what to `expand` to get it back. */
export interface Dropped {
  kind: "correction" | "date" | "decision" | "identifier" | "name" | "number" | "question";
  text: string;
  sessionId: string;
  seq: number;
  expand?: string | null;
}

/** Something the agent must not lose hold of, carried outside the prose, and where it was said. */
export interface StateRecord {
  kind: "confirmed action" | "goal" | "live handle" | "open loop";
  text: string;
  firstSeq: number;
  lastSeq: number;
  at: string;
}

/** The source messages of a summary, a lesson or a `span`, verbatim. To continue, pass `next` as `after`. */
export type Expand = {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Of a summary or a lesson, as in `L1-0003` or `lesson-0003`. */
  summaryId?: string | null;
  span?: ExpandedSpan | null;
  /** The host's stable session key, at most 512 bytes. */
  sessionId?: string | null;
  /** To continue: `next` of the page before. */
  after?: string | null;
  /** Most messages. Default: 100. */
  limit?: number;
} & (
  | { summaryId: string; }
  | { span: ExpandedSpan; }
);

/** Messages `firstSeq` to `lastSeq` of a session. */
export interface ExpandedSpan {
  /** First message of it. */
  firstSeq: number;
  /** Last message of it. */
  lastSeq: number;
  /** The host's stable session key, at most 512 bytes. */
  sessionId?: string | null;
}

/** The messages behind a summary or a span, verbatim. `next` is given where there are more. */
export interface Expansion {
  spans: SourceSpan[];
  messages: SourceLine[];
  summaryId?: string | null;
  next?: string | null;
}

/** A stretch of one session: what a summary stands for. */
export interface SourceSpan {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  firstSeq: number;
  lastSeq: number;
}

/** A message in its place, and of which session. */
export interface SourceLine {
  seq: number;
  receivedAt: string;
  message: Message;
  noise?: string | null;
  redactions?: Record<string, number>;
  missingParts?: BlobRef[];
  sessionId: string;
}

/** Where a large string of a message lies, and where in the content it belongs. */
export interface BlobRef {
  path: (string | number)[];
  sha256: string;
  chars: number;
  bytes: number;
  /** Default: false. */
  isBinary?: boolean;
}

/** The agent's summaries, newest first, of one `level` or session. To continue, pass `next` as `before`. */
export interface Summaries {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  level?: number | null;
  /** The host's stable session key, at most 512 bytes. */
  sessionId?: string | null;
  /** As in `L1-0003`. */
  before?: string | null;
  /** Default: 20. */
  limit?: number;
  /** Only these. */
  ids?: string[] | null;
}

export interface SummaryPage {
  summaries: SummaryView[];
  next?: string | null;
}

/** A summary as `inspect` shows it. */
export interface SummaryView {
  id: string;
  level: number;
  spans: SourceSpan[];
  sources: string[];
  text: string;
  sourceMessages: number;
  sourceTokens: number;
  tokens: number;
  summarizer: string;
  promptVersion: string;
  fingerprint: string;
  usage: Usage;
  firstAt: string;
  lastAt: string;
  madeAt: string;
  lost: number;
  losses: Loss[];
  kept?: Loss[];
  parent?: string | null;
  instructions?: string | null;
}

/** What a model read and wrote for one answer, and what that cost. `cached_tokens` are part of `input_tokens`. */
export interface Usage {
  /** Default: 0. */
  inputTokens?: number;
  /** Default: 0. */
  cachedTokens?: number;
  /** Default: 0. */
  outputTokens?: number;
  /** Default: 0.0. */
  dollars?: number;
}

/** Something particular that the source says and the summary does not, and where it is said. */
export interface Loss {
  kind: "correction" | "date" | "decision" | "identifier" | "name" | "number" | "question";
  text: string;
  sessionId: string;
  seq: number;
}

/**
 * Summarise what is due in one session or in all of the agent's, in the background; with `again`, also rewrite what
 * a lesser summarizer wrote than is available now. With `dryRun`, only estimate the cost.
 */
export interface Compress {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** The host's stable session key, at most 512 bytes. */
  sessionId?: string | null;
  /** Default: false. */
  dryRun?: boolean;
  /** Default: false. */
  again?: boolean;
}

/** What is still to be summarised, and about what it will take. */
export interface CompressionEstimate {
  agentId: string;
  sessions: number;
  waiting: number;
  sourceTokens: number;
  summaries: number;
  inputTokens: number;
  outputTokens: number;
  dollars: number;
  summarizer: string;
  counts: Record<string, number>;
  /** Default: 0. */
  again?: number;
}

/** What the agent's context held at a given time, and why. */
export interface GetReplay {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  at: string;
  /** Of the messages that came since the last swap, only the newest. */
  newest?: number | null;
}

/**
 * What was in the agent's context at a moment: what it was handed, and what had come since.
 *
 * `is_exact` is false where the host had compacted by itself in between, or where too much had come to be shown.
 */
export interface Replay {
  sessionId: string;
  agentId: string;
  at: string;
  generation: number;
  kind: "log" | "start" | "swap";
  handedAt: string | null;
  memory: string;
  messages: Message[];
  lastSeq: number;
  isExact: boolean;
  why: ReplayEvent[];
  turnMemory?: string;
  turnParts?: TurnPart[];
  parts?: Part[];
  /** Default: 0. */
  handedMessages?: number;
  /** Default: 0. */
  leftOut?: number;
  /** Default: 0. */
  usedTokens?: number;
  /** Default: 0. */
  contextWindow?: number;
  /** Default: 0. */
  tokensAfter?: number;
  /** Default: {"verbatim": [], "summaries": [], "dropped": [], "droppedCount": 0, "state": []}. */
  ledger?: Ledger;
}

/** Why a context was what it was. */
export interface ReplayEvent {
  at: string;
  verb: string;
  actor: string;
  details: Record<string, unknown>;
}

/** One part of a section of a turn: how many things it tells of, what it takes, and why it is there. */
export interface TurnPart {
  section: "memory" | "recall";
  kind: "anchors" | "handover" | "lessons" | "newest" | "pinned" | "recalled" | "session" | "summaries" | "topics" | "working state";
  tokens: number;
  items: number;
  why: string;
  text: string;
}

/** The next summary for the host's own model to write, or none; waits up to `waitMs` for one. */
export interface ClaimJob {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Default: 0. */
  waitMs?: number;
}

export interface ClaimedJob {
  job: Job | null;
}

/**
 * A summary for the host's model to write. `messages` is the prompt, to be given as it is, without a system prompt;
 * `stable` of them at the start are the same next time, so their end is the place for a cache mark.
 */
export interface Job {
  id: string;
  agentId: string;
  messages: Message[];
  stable: number;
  maxOutputTokens: number;
  leaseSeconds: number;
}

/** What the host's model wrote for a job. If sent twice, the first counts. */
export interface CompleteJob {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  jobId: string;
  text: string;
  usage?: HostUsage | null;
}

/** What the host's model read and wrote for a job, and its price. `cached_tokens` are part of `input_tokens`. */
export interface HostUsage {
  /** Default: 0. */
  inputTokens?: number;
  /** Default: 0. */
  cachedTokens?: number;
  /** Default: 0. */
  outputTokens?: number;
  /** Default: 0.0. */
  dollars?: number;
}

export interface Done {
  /** Default: true. */
  ok?: boolean;
}

/** The host's model could not write it: the next summarizer is asked. */
export interface FailJob {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  jobId: string;
  reason?: string;
}

/**
 * What was said that answers `query`, best first.
 *
 * `scope`: this `session`, all sessions of this `agent`, or `all` agents that share their memory with each other.
 * `at`: as it was known then. What was corrected since is left out unless `includeSuperseded`. With `depth` `deep` the
 * first of them are read once more by the model that the setting `rerank.reader` names, which takes seconds.
 */
export interface Recall {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** A question, some words or a whole message. Times are understood (“last Tuesday”). */
  query: string;
  /** Most entries. Default: 5. */
  limit?: number;
  /** One session, all of the agent's, or also those of agents that opened theirs. Default: "agent". */
  scope?: "agent" | "all" | "session";
  /** Answer as it was known then: an ISO 8601 time with its zone. */
  at?: string | null;
  /** Also what was corrected since. Default: false. */
  includeSuperseded?: boolean;
  /** Say why each was found, and what was left out. Default: false. */
  explain?: boolean;
  /** Only look: no retrieval is counted. Default: false. */
  preview?: boolean;
  /** `deep`: a model reads the first ones again, for a better order. Slower; use it if needed. */
  depth?: "deep" | "normal" | null;
}

/** What `recall` answers, best first. `degraded` names what was unavailable, and why. */
export interface Recollection {
  entries: MemoryEntry[];
  tookMs: number;
  degraded: string[];
  explained?: Explained | null;
}

/** Something remembered: what was said, when, by whom, and where in the log it stands. */
export interface MemoryEntry {
  id: string;
  agentId: string;
  sessionId: string;
  text: string;
  ts: string;
  score: number;
  foundBy: string[];
  span: Span;
  tier: "cold" | "hot" | "warm";
  pinned: boolean;
  origin: string;
  supersededBy?: string | null;
  followedBy?: string | null;
  why?: Why | null;
}

/** Why an entry was found: with `explain` all of it, else only what it replaces. */
export interface Why {
  replaces?: Replaced[];
  speaker?: string | null;
  probability?: number | null;
  similarity?: number | null;
  ranks?: Record<string, number>;
  evidence?: Record<string, number>;
}

/** What an entry stands in the place of. */
export interface Replaced {
  id: string;
  text: string;
  ts: string;
}

/** How an answer came about. */
export interface Explained {
  query: string;
  lookedFor: string[];
  times: string[];
  recipes: Record<string, string>;
  lookedAt: number;
  leftOut: LeftOut[];
}

/** What was found and is not shown. */
export interface LeftOut {
  id: string;
  why: string;
}

/**
 * What the agent should have in mind before a model call: `memory` for the start of the context, the same bytes
 * until the next swap, and `recall` for the end of the user's turn.
 *
 * `currentTokens` of `contextWindow` are in use. A host that swaps by its own count says when and to how much
 * (`swapAtTokens`, `swapToTokens`, `tokenRatio`, as with `swap`), so that the context stands by in time. `deadlineMs`
 * limits how long it may take, if the host has less time than the setting `turn.deadline`. `explain` shows the parts,
 * their size and why each is there; `preview` changes nothing: no retrieval is counted and no section is kept.
 */
export interface PrepareTurn {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  prompt: string;
  /** Tokens in use in the context now. */
  currentTokens?: number | null;
  /** Tokens the agent's model takes. */
  contextWindow?: number | null;
  /** Tokens of the conversation at which it swaps. */
  swapAtTokens?: number | null;
  /** Tokens of the conversation that a swap may leave. */
  swapToTokens?: number | null;
  /** Tokens of the model's provider for each that we estimate. */
  tokenRatio?: number | null;
  deadlineMs?: number | null;
  /** Default: false. */
  explain?: boolean;
  /** Default: false. */
  preview?: boolean;
}

/**
 * What the agent should have in mind. `memory` belongs at the start of the context and stays the same, byte for
 * byte, until the next swap; `recall` belongs at its end, in the user's turn, and is of this turn only.
 */
export interface PreparedTurn {
  memory: string;
  recall: string;
  tokens: TurnTokens;
  entries: MemoryEntry[];
  intent: "brief" | "plain" | "recall" | "resume";
  degraded: string[];
  parts?: TurnPart[];
  forgets?: number | null;
}

/** What the two sections take, by our estimate, and what `recall` may take. */
export interface TurnTokens {
  memory: number;
  recall: number;
  budget: number;
}

/** Memories to add to the result of the host's own memory search if that is sparse. Ask before the search runs. */
export interface Enrich {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  query: string;
}

/**
 * What a sparse result of the host's own memory search is enriched with, asked for before the search runs, so that
 * a synchronous hook has it at hand. `text` is empty where nothing comes to mind.
 */
export interface Enrichment {
  text: string;
  entries: MemoryEntry[];
  tokens: number;
  sparse: Sparseness;
  degraded: string[];
}

/** A search result with at most so many hits, or at most so many characters, is sparse. */
export interface Sparseness {
  results: number;
  chars: number;
}

/** The topics of one session or of the newest ones: what they talk about and return to. */
export interface GetTopics {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Only those of this session. */
  sessionId?: string | null;
}

export interface TopicList {
  topics: Topic[];
}

/** Something they talk about. */
export interface Topic {
  label: string;
  mentions: number;
  total: number;
  freshness: number;
  isFixated: boolean;
  isStale: boolean;
  firstAt: string;
  lastAt: string;
  /** Default: 1. */
  sessions?: number;
}

/** The anchors of one session or of the newest ones: identities, contradictions, unresolved points. */
export interface GetAnchors {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Only those of this session. */
  sessionId?: string | null;
}

export interface AnchorList {
  anchors: Anchor[];
}

/** Something that must not be lost from sight: who they are, what does not fit together, what is unresolved. */
export interface Anchor {
  kind: "contradiction" | "identity" | "tension";
  text: string;
  sessionId: string;
  seq: number;
  at: string;
  /** Default: 1. */
  times?: number;
  /** Default: true. */
  isFresh?: boolean;
}

/** Open tasks and current goal, with topics and anchors, of one session or of the newest ones. */
export interface GetState {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Only those of this session. */
  sessionId?: string | null;
}

/** Open tasks, current goal, topics and anchors of an agent: of one session, or of the newest ones. */
export interface ContinuityState {
  agentId: string;
  topics: Topic[];
  anchors: Anchor[];
  working: SessionState[];
  session?: SessionInfo | null;
}

/** What one session was doing when it was last heard of. */
export interface SessionState {
  sessionId: string;
  lastAt: string;
  records: StateRecord[];
}

/** A conversation so far. `gap` tells how it goes on from what was before it (D16). */
export interface SessionInfo {
  sessionId: string;
  exchanges: number;
  startedAt: string;
  lastAt: string;
  gap: "continuous" | "first" | "interrupted" | "new";
}

/** The settings that apply to an agent. */
export interface GetConfig {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
}

/** What the provider goes by for one agent. */
export interface SettingsView {
  agentId: string;
  settings: Record<string, unknown>;
  origins?: Record<string, string>;
}

/**
 * The lessons learnt from what was said, newest first.
 *
 * Of one `kind`, of one or several `status`. To continue, pass `next` as `before`.
 */
export interface GetLessons {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  kind?: "correction" | "decision" | "fact" | "preference" | "procedure" | null;
  status?: "accepted" | "edited" | "learnt" | "rejected" | ("accepted" | "edited" | "learnt" | "rejected")[] | null;
  /** As in `lesson-0003`. */
  before?: string | null;
  /** Default: 50. */
  limit?: number;
}

export interface LessonPage {
  agentId: string;
  lessons: Lesson[];
  counts: Record<string, number>;
  next?: string | null;
}

/** A lesson as it is kept and shown. */
export interface Lesson {
  id: string;
  agentId: string;
  kind: "correction" | "decision" | "fact" | "preference" | "procedure";
  text: string;
  status: "accepted" | "edited" | "learnt" | "rejected";
  confidence: number;
  firstSeen: string;
  lastSeen: string;
  times: number;
  sources: LessonSource[];
  learntBy: string;
  about?: string | null;
  learntText?: string | null;
  replacedBy?: string | null;
  key?: string;
}

/** A message that says it. */
export interface LessonSource {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  seq: number;
  at: string;
}

/** Accept, reject or `edit` a lesson: `text` replaces what it says. The same verdict again changes nothing. */
export type JudgeLesson = {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** As in `lesson-0003`. */
  lessonId: string;
  verdict: "accept" | "edit" | "reject";
  text?: string | null;
} & (
  | { text: string; }
);

/**
 * Pin entries, so that they stay hot: those in `entryIds`, all of a session or its `messageIds`, or those that
 * contain a `keyword`.
 */
export type Pin = {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** All with these words. */
  keyword?: string | null;
  /** All of this session. */
  sessionId?: string | null;
  /** Ids that `recall` gave. */
  entryIds?: string[] | null;
  /** Of the session, only messages of these ids. */
  messageIds?: string[] | null;
} & (
  | { keyword: string; }
  | { sessionId: string; }
  | { entryIds: string[]; }
);

/** What `pin` and `unpin` changed. */
export interface Pinned {
  changed: number;
  entryIds: string[];
}

/** Unpin entries: those in `entryIds`, all of a session or its `messageIds`, or those that contain a `keyword`. */
export type Unpin = {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** All with these words. */
  keyword?: string | null;
  /** All of this session. */
  sessionId?: string | null;
  /** Ids that `recall` gave. */
  entryIds?: string[] | null;
  /** Of the session, only messages of these ids. */
  messageIds?: string[] | null;
} & (
  | { keyword: string; }
  | { sessionId: string; }
  | { entryIds: string[]; }
);

/**
 * Take back that a later message replaced an earlier one, or may be about the same: `entryId` holds again, as do
 * lessons that had given way with it, and the link is not made again. With `byId`, only the link to that message.
 */
export interface Unlink {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** The earlier message, as `recall` shows it. */
  entryId: string;
  /** Only what links it to this later message. */
  byId?: string | null;
}

/** What `unlink` took back. */
export interface Unlinked {
  changed: number;
}

/**
 * Erase messages for good, with everything derived from them: those in `entryIds`, all of a session, those
 * `matching` a text, regardless of case and spacing, those that hold `secrets`, or `everything`. Give exactly one of
 * the five. `reason` is kept (it may be empty). With `dryRun` nothing is erased, and the receipt says what would
 * be.
 */
export type Forget = {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Why; kept in the record. */
  reason: string;
  /** Ids that `recall` gave. */
  entryIds?: string[] | null;
  /** All of this session. */
  sessionId?: string | null;
  /** All that contain this text, regardless of case. */
  matching?: string | null;
  /** All that hold a secret that the redaction of today would take out. Default: false. */
  secrets?: boolean;
  /** All that the agent was ever told: it begins anew. Default: false. */
  everything?: boolean;
  /** Erase nothing; only say what would be erased. Default: false. */
  dryRun?: boolean;
} & (
  | { entryIds: string[]; }
  | { sessionId: string; }
  | { matching: string; }
  | { secrets: boolean; }
  | { everything: boolean; }
);

export interface Forgot {
  receipt: ForgetReceipt;
}

/** What was forgotten (or, with `dry_run`, would be), in numbers and places, never in words. */
export interface ForgetReceipt {
  id: string;
  agentId: string;
  at: string;
  by: string;
  reason: string;
  dryRun: boolean;
  how: string;
  reached: Reached;
  spans: ForgottenSpan[];
  probes: Probe[];
  outside: string[];
  residue: Residue[];
  /** Default: 0. */
  wordless?: number;
  secrets?: Record<string, number>;
  /** Default: 0. */
  auditSeq?: number;
  signature?: string;
  unfinished?: Unfinished | null;
}

/** How much of each kind is touched, or would be. */
export interface Reached {
  /** Default: 0. */
  messages?: number;
  /** Default: 0. */
  vectors?: number;
  /** Default: 0. */
  indexEntries?: number;
  /** Default: 0. */
  largeParts?: number;
  /** Default: 0. */
  summaries?: number;
  /** Default: 0. */
  lessons?: number;
  /** Default: 0. */
  contexts?: number;
  /** Default: 0. */
  turnMemories?: number;
  /** Default: 0. */
  notes?: number;
  /** Default: 0. */
  completions?: number;
  /** Default: 0. */
  supersessions?: number;
  /** Default: 0. */
  pages?: number;
  /** Default: 0. */
  summaryFiles?: number;
  /** Default: 0. */
  backups?: number;
  /** Default: 0. */
  outboxRecords?: number;
}

/** Messages of one session that were forgotten. */
export interface ForgottenSpan {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  firstSeq: number;
  lastSeq: number;
}

/**
 * A stretch of words that was forgotten, known by a keyed digest only: enough to find it again wherever it is left,
 * and nothing to read.
 */
export interface Probe {
  words: number;
  digest: string;
}

/** Something that should be gone and is not. */
export interface Residue {
  where: string;
  what: string;
}

/** What is still to be done of a forgetting that broke off: the log is done, the files are not. */
export interface Unfinished {
  summaries: string[];
  lessons: string[];
  parts: string[];
}

/**
 * Search everywhere for what a receipt of `forget` says is gone, and check that the receipt is this provider's own;
 * for one that is not, nothing is searched. With `matching`, also search for this text. A stored receipt can be given
 * by its `receiptId`, and is part of the answer; with neither, the agent's stored receipts are listed.
 */
export interface VerifyForgotten {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  receipt?: ForgetReceipt | null;
  receiptId?: string | null;
  matching?: string | null;
}

/** What `forget --verify` found; or, where no receipt was named, which there are. */
export interface ForgetCheck {
  isGenuine: boolean;
  searched: Record<string, number>;
  residue: Residue[];
  /** Default: 0. */
  wordless?: number;
  receipt?: ForgetReceipt | null;
  receipts?: KeptReceipt[];
}

/** A receipt that the store keeps, in a line. */
export interface KeptReceipt {
  id: string;
  at: string;
  by: string;
  reason: string;
  how: string;
  messages: number;
  residue: number;
  isFinished: boolean;
}

/** Allow or forbid (`enabled`) this agent and others to search each other's memory, or ask whether they may. */
export interface Cross {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  enabled?: boolean | null;
}

/** Whether an agent's memory and that of others are open to each other. */
export interface CrossSearch {
  enabled: boolean;
  agents: string[];
}

/** Rebuild the agent's search index from the log, in the background; with `embeddings` the vectors too. */
export interface Reindex {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Embed every message again as well, not only index it. Default: false. */
  embeddings?: boolean;
}

/** How far an agent's index is: `entries` can be found by text, `embedded` of them by meaning too. */
export interface IndexStatus {
  entries: number;
  embedded: number;
  waiting: number;
  model?: string | null;
  trouble?: string | null;
  reader?: string | null;
  readerTrouble?: string | null;
}

/**
 * Run the agent's maintenance now, all `tasks` or those named, and report what was done. It also runs by itself
 * every few minutes.
 */
export interface Maintain {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  tasks?: string[] | null;
}

export interface MaintenanceReport {
  agentId: string;
  runs: TaskRun[];
  health: TaskHealth[];
}

/** One run of one task: for one agent, or for all where it is not an agent's. */
export interface TaskRun {
  task: string;
  did: Record<string, number>;
  seconds: number;
  agentId?: string | null;
  error?: string | null;
  waits?: string[];
}

/** How a task is: when it last worked, and since when it does not. */
export interface TaskHealth {
  task: string;
  runs: number;
  failures: number;
  did: Record<string, number>;
  lastRun?: string | null;
  lastSuccess?: string | null;
  nextRun?: string | null;
  error?: string | null;
  waits?: string[];
}

/** Everything an agent has, as records in a fixed order. To continue, pass `next` as `after`. */
export interface Export {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  after?: string | null;
  /** Default: 500. */
  limit?: number;
}

/** Records in their order. `next` is given where there are more. */
export interface ExportPage {
  agentId: string;
  records: (AgentRecord | SessionRecord | MessageRecord | MarkRecord | SummaryRecord | LessonRecord)[];
  next?: string | null;
}

/** Whose memory follows. `cross_search` is there where somebody decided on it. */
export interface AgentRecord {
  type: "agent";
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId: string;
  crossSearch?: boolean | null;
}

/** A session; its messages and marks follow. How it ended is told for reading: the marks say it. */
export interface SessionRecord {
  type: "session";
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  startedAt: string;
  /** The host's stable session key, at most 512 bytes. */
  parentSessionId?: string | null;
  endedAt?: string | null;
  endReason?: string | null;
}

/**
 * A message in its place, whole. `pinned` counts the agent's pins in the order of pinning. `missing_parts` could
 * not be read back: a stand-in in the message says so.
 */
export interface MessageRecord {
  type: "message";
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  seq: number;
  message: Message;
  noise?: string | null;
  redactions?: Record<string, number>;
  pinned?: number | null;
  missingParts?: BlobRef[];
}

/** Something that happened to the session after message `seq`. */
export interface MarkRecord {
  type: "mark";
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  seq: number;
  kind: "end" | "first" | "interrupted" | "new" | "post-compaction" | "pre-compaction" | "start";
  at: string;
  reason?: string | null;
}

/** A summary. Its `id` follows from the order of summaries; `sources` are ids of those that it merges. */
export interface SummaryRecord {
  type: "summary";
  id: string;
  level: number;
  spans: RecordedSpan[];
  text: string;
  rank: number[];
  brief: string;
  sourceMessages: number;
  sourceTokens: number;
  tokens: number;
  firstAt: string;
  lastAt: string;
  summarizer: string;
  promptVersion: string;
  fingerprint: string;
  /** Default: {"inputTokens": 0, "cachedTokens": 0, "outputTokens": 0, "dollars": 0.0}. */
  usage?: Usage;
  sources?: string[];
  kept?: Loss[];
  losses?: Loss[];
  /** Default: 0. */
  lost?: number;
}

/**
 * A stretch of a session, and when its first and its last message were said: so that it is known to be the same.
 * `forgotten` counts the messages in it that were: what was made before they were is not what is made of the rest.
 */
export interface RecordedSpan {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  firstSeq: number;
  lastSeq: number;
  firstAt: string;
  lastAt: string;
  /** Default: 0. */
  forgotten?: number;
}

/** A lesson, and where it was said. */
export interface LessonRecord {
  type: "lesson";
  id: string;
  kind: "correction" | "decision" | "fact" | "preference" | "procedure";
  text: string;
  status: "accepted" | "edited" | "learnt" | "rejected";
  confidence: number;
  firstSeen: string;
  lastSeen: string;
  times: number;
  learntBy: string;
  key?: string;
  about?: string | null;
  learntText?: string | null;
  replacedBy?: string | null;
  sources?: LessonSource[];
}

/**
 * Import the records of an export, in order, each once. A request that continues a session names the session's
 * last message before it (`follows`). `done` says that no more will come; until then nothing is derived from them.
 */
export interface Import {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  records: (AgentRecord | SessionRecord | MessageRecord | MarkRecord | SummaryRecord | LessonRecord)[];
  follows?: Followed | null;
  /** Default: false. */
  done?: boolean;
}

/** The message that was given last before this request, and when it was said: what comes now follows that one. */
export interface Followed {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  seq: number;
  at: string;
}

/** What became of the records of one request. */
export interface Imported {
  agentId: string;
  taken: number;
  alreadyThere: number;
  refused: RefusedRecord[];
}

/** A record that was not taken, and why. */
export interface RefusedRecord {
  record: string;
  reason: string;
}

/** The host is about to compact: save what is not saved yet. */
export interface PreCompaction {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  messages?: Message[] | null;
}

export interface Saved {
  saved: number;
}

/** The host has compacted by itself. `newContext` is what it continues with: a text, messages, or an object. */
export interface PostCompaction {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  newContext?: string | unknown[] | Record<string, unknown> | null;
}

/**
 * A session starts or continues; the answer is the context it needs, or null.
 *
 * `parentSessionId`: the session that started it, if it belongs to a subagent. Only the name is kept, and `status`
 * shows it; it gives no access to another agent's memory.
 */
export interface SessionStart {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** The context is at most this many characters. */
  maxChars?: number | null;
  /** The host's stable session key, at most 512 bytes. */
  parentSessionId?: string | null;
}

/** A session has ended, for a `reason` (new, reset, idle, daily, shutdown, …). */
export interface SessionEnd {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Why, such as new, reset, idle, daily, shutdown. */
  reason?: string | null;
}

/**
 * The session's whole messages after `afterSeq`; where there is none yet, waits up to `waitMs` for one.
 *
 * The first `limit` of them, or the `newest`.
 */
export interface GetLog {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Default: 0. */
  afterSeq?: number;
  /** Default: 100. */
  limit?: number;
  /** Default: false. */
  newest?: boolean;
  /** Default: 0. */
  waitMs?: number;
}

export interface LogPage {
  messages: LogLine[];
  lastSeq: number;
}

/** A message in its place, whole, as a reader of the log sees it. */
export interface LogLine {
  seq: number;
  receivedAt: string;
  message: Message;
  noise?: string | null;
  redactions?: Record<string, number>;
  missingParts?: BlobRef[];
}

/** Which of these message ids the session does not hold: for a host that compares its transcript with the log. */
export interface GetMissing {
  /** The host's stable session key, at most 512 bytes. */
  sessionId: string;
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  ids: string[];
}

/** Ids that were asked for and are not there, each once, in the order given. */
export interface Missing {
  missing: string[];
}

/**
 * The agent's sessions, the one last written to first, and how full the context of each is. To continue, pass
 * `next` as `after`. `matching` narrows them to those whose id contains a text; `sessionId` asks for one.
 */
export interface GetSessions {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** How many to leave out. Default: 0. */
  after?: number;
  /** Most sessions. Default: 50. */
  limit?: number;
  /** A part of their ids, regardless of case. */
  matching?: string;
  /** This session only. */
  sessionId?: string | null;
}

export interface SessionPage {
  sessions: SessionView[];
  total: number;
  next?: number | null;
}

/** A session, and about what its context takes now: what was handed over last, and all that came since. */
export interface SessionView {
  sessionId: string;
  agentId: string;
  lastSeq: number;
  chars: number;
  generation: number;
  startedAt: string;
  lastAt: string;
  endedAt?: string | null;
  endReason?: string | null;
  parentSessionId?: string | null;
  /** Default: 0. */
  contextTokens?: number;
  /** Default: 0. */
  contextWindow?: number;
  /** Default: 0. */
  swapAtTokens?: number;
}

/** How much was said on each day, and what models were used for it. */
export interface GetActivity {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** How many days back, today included. Default: 366. */
  days?: number;
}

export interface Activity {
  agentId: string;
  days: Day[];
}

/** What was said on one day (UTC), and what models were used for it. */
export interface Day {
  day: string;
  messages: number;
  chars: number;
  /** Default: 0. */
  modelCalls?: number;
  /** Default: {"inputTokens": 0, "cachedTokens": 0, "outputTokens": 0, "dollars": 0.0}. */
  usage?: Usage;
}

/** The memory entries of these ids; without `entryIds`, those that are pinned, the one pinned last first. */
export interface GetEntries {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** Ids that `recall` gave. */
  entryIds?: string[] | null;
  /** Most entries. Default: 100. */
  limit?: number;
}

export interface EntryList {
  entries: MemoryEntry[];
}

/** Counts, tiers, backlog, costs and capture reconciliation of one agent. */
export interface GetStatus {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
}

export interface Status {
  agentId: string;
  version: string;
  store: string;
  startedAt: string;
  counts: Counts;
  tiers: Tiers;
  pinned: number;
  retrievals: number;
  index: IndexStatus;
  summaries: SummaryStatus;
  backlog: number;
  costs: Costs;
  capture: CaptureReport;
  sessions: Session[];
  agents: string[];
  hotHours?: TierHours | null;
  maintenance?: TaskHealth[];
  lessons?: Record<string, number>;
  /** Default: 0. */
  forgets?: number;
  /** Default: false. */
  encrypted?: boolean;
  backups?: BackupStatus[];
  /** Default: 0. */
  unreadableBackups?: number;
}

export interface Counts {
  /** Default: 0. */
  messages?: number;
  /** Default: 0. */
  chars?: number;
  /** Default: 0. */
  sessions?: number;
  /** Default: 0. */
  noise?: number;
  /** Default: 0. */
  duplicates?: number;
  /** Default: 0. */
  conflicts?: number;
  /** Default: 0. */
  redactions?: number;
  /** Default: 0. */
  blobs?: number;
  /** Default: 0. */
  auditEvents?: number;
}

export interface Tiers {
  hot: number;
  warm: number;
  cold: number;
}

/** How far an agent's summaries are. */
export interface SummaryStatus {
  counts: Record<string, number>;
  waiting: number;
  summarizers: string[];
  troubles?: Record<string, string>;
  spending?: DailySpending | null;
}

/** What the model that writes has used today (UTC), for all agents, and the most it may use. */
export interface DailySpending {
  tokens: number;
  dollars: number;
  maxTokens: number;
  maxDollars: number;
}

/** What models have cost so far. */
export interface Costs {
  tokens: number;
  dollars: number;
}

/** What clients say they sent against what arrived. `missing` above 0 is a loss to look into. */
export interface CaptureReport {
  sent: number;
  received: number;
  missing: number;
  waiting: number;
  clients: Capture[];
}

/** What one client says it sent to one agent, against what arrived. */
export interface Capture {
  client: string;
  sent: number;
  received: number;
  missing: number;
  waiting: number;
  lastSeen: string;
}

export interface Session {
  sessionId: string;
  agentId: string;
  lastSeq: number;
  chars: number;
  generation: number;
  startedAt: string;
  lastAt: string;
  endedAt?: string | null;
  endReason?: string | null;
  parentSessionId?: string | null;
}

/** How long a message stays hot: at first, longer for each retrieval, at most. */
export interface TierHours {
  base: number;
  bump: number;
  most: number;
}

/** A backup that holds the agent's memory. */
export interface BackupStatus {
  file: string;
  madeAt: string;
  inDataFolder: boolean;
  messages?: number | null;
}

/**
 * The newest audit events, after `since` (a time, or the sequence number of an event), `before` an event, of these
 * `verbs`.
 */
export interface GetAudit {
  /** The owner, at most 128 bytes; left out, taken from the session key. */
  agentId?: string | null;
  /** The host's stable session key, at most 512 bytes. */
  sessionId?: string | null;
  since?: string | number | null;
  /** Default: 100. */
  limit?: number;
  /** Only events before the one of this number. */
  before?: number | null;
  /** Only events of these. */
  verbs?: string[] | null;
}

/** `verified`: the end of the chain is unbroken and ends in `head`. */
export interface AuditReport {
  events: AuditEvent[];
  head: AuditHead;
  verified: boolean;
}

export interface AuditEvent {
  seq: number;
  agentId: string;
  at: string;
  verb: string;
  actor: string;
  details: Record<string, unknown>;
  previous: string;
  hash: string;
  sessionId?: string | null;
}

export interface AuditHead {
  seq: number;
  hash: string;
}

/** An RFC 9457 problem document. `retryable` says whether the same request may succeed later. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  retryable: boolean;
}
