// The chain of what was done, by whom: verified, filtered, exported.
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api";
import type { PageProps } from "../app";
import { number, time } from "../format";
import { useHappened } from "../live";
import { useAction, useAsk } from "../parts/asking";
import { Badge, Card, download, Heading } from "../parts/pieces";
import { Empty, Failure, Progress, Shown } from "../parts/states";
import { linkTo } from "../router";
import type { AuditEvent, GetAudit } from "../wire";

const PAGE = 40;
const EXPORT_PAGE = 1000;
const KINDS: [string, string, string[] | null][] = [
  ["", "everything", null],
  ["said", "messages", ["onMessage", "import", "hooks/pre-compaction"]],
  ["turns", "turns and recalls", ["prepareTurn", "recall", "enrich"]],
  ["swaps", "swaps and summaries", ["swap", "compress", "hooks/post-compaction", "getCompressedContext"]],
  ["changes", "pins, lessons, corrections", ["pin", "unpin", "unlink", "lessons/judge", "supersede", "cross"]],
  ["forget", "forgetting", ["forget", "forget/verify"]],
  ["care", "care", ["maintain", "reindex", "offload", "salvage", "export"]],
];

export function AuditPage({ agentId, query }: PageProps) {
  const [kind, setKind] = useState("");
  const [sessionId, setSessionId] = useState(query.session ?? "");
  const verbs = KINDS.find(([id]) => id === kind)?.[2] ?? null;
  const asked: GetAudit = { agentId, limit: PAGE, verbs, sessionId: sessionId || null };
  const first = useAsk("audit", asked);
  const [older, setOlder] = useState<AuditEvent[]>([]);
  const [isStale, setStale] = useState(false);
  useEffect(() => {
    setOlder([]);
    setStale(false);
  }, [first.value]);
  useHappened((news) => news.events.length && setStale(true));
  const more = useAction(async (before: number) => setOlder([...older, ...(await ask("audit", { ...asked, before })).events.reverse()]));
  const save = useExport(asked);
  return (
    <>
      <Heading title="Audit" lead="Every verb leaves one event; each holds the hash of the one before.">
        <label class="field">
          <span>What</span>
          <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            {KINDS.map(([id, name]) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Session</span>
          <input value={sessionId} placeholder="all" onChange={(event) => setSessionId(event.currentTarget.value.trim())} />
        </label>
        <button type="button" disabled={save.isRunning} onClick={() => void save.run()}>
          {save.isRunning ? `Exporting, ${number(save.done)}` : "Export"}
        </button>
      </Heading>
      {save.error && <Failure error={save.error} />}
      <Shown of={first} label="Reading the chain">
        {(report) => {
          const events = [...[...report.events].reverse(), ...older];
          const last = events.at(-1);
          return (
            <Card title={`Up to event ${number(report.head.seq)}`} tools={<Badge kind={report.verified ? "good" : "bad"}>{report.verified ? "verified" : "the chain is broken"}</Badge>}>
              <p class="small muted">
                Head <code>{report.head.hash.slice(0, 16)}…</code> The newest 1,000 events are verified here; <code>offbook audit --verify</code> proves all of it.
              </p>
              {isStale && (
                <button type="button" onClick={first.again}>
                  Show what happened since
                </button>
              )}
              {events.length ? <Events events={events} /> : <Empty title="No event fits">Choose another kind or another session.</Empty>}
              {more.isRunning && <Progress label="Reading" />}
              {more.error && <Failure error={more.error} />}
              {last && last.seq > 1 && !more.isRunning && (
                <button type="button" onClick={() => void more.run(last.seq)}>
                  Older
                </button>
              )}
            </Card>
          );
        }}
      </Shown>
    </>
  );
}

function Events({ events }: { events: AuditEvent[] }) {
  return (
    <div class="table-scroll">
      <table class="audit">
        <thead>
          <tr>
            <th class="number">#</th>
            <th>When</th>
            <th>Verb</th>
            <th>By</th>
            <th>Session</th>
            <th>Details</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <tr key={event.seq} data-row tabIndex={-1}>
              <td class="number">{event.seq}</td>
              <td class="when">{time(event.at)}</td>
              <td>
                <strong>{event.verb}</strong>
              </td>
              <td class="when">{event.actor}</td>
              <td>{event.sessionId && <a href={linkTo("conversation", event.sessionId)}>{event.sessionId}</a>}</td>
              <td class="audit-details">{brief(event.details)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function brief(details: Record<string, unknown>): string {
  return Object.entries(details)
    .map(([name, value]) => {
      if (Array.isArray(value) && value.length > 3) return `${name} ${value.length} of them`;
      const text = typeof value === "string" ? value : JSON.stringify(value);
      const most = /^[0-9a-f]{64}$/.test(text) ? 12 : 60;
      return `${name} ${text.length > most ? `${text.slice(0, most)}…` : text}`;
    })
    .join(", ");
}

/** All events that fit, page by page, as lines of JSON. */
function useExport(asked: GetAudit) {
  const [done, setDone] = useState(0);
  const action = useAction(async () => {
    const lines: string[] = [];
    let before: number | null = null;
    for (;;) {
      const { events }: { events: AuditEvent[] } = await ask("audit", { ...asked, limit: EXPORT_PAGE, before });
      lines.push(...events.reverse().map((event) => JSON.stringify(event)));
      setDone(lines.length);
      if (events.length < EXPORT_PAGE) break;
      before = events.at(-1)!.seq;
    }
    download(`audit-${asked.agentId}.jsonl`, `${lines.reverse().join("\n")}\n`, "application/x-ndjson");
  });
  return { ...action, done };
}
