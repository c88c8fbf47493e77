// A session word for word, and beside it the cover: which stretch stands verbatim in the context, which in a summary.
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask } from "../api";
import type { PageProps } from "../app";
import { compact, count, number, percent } from "../format";
import { useHappened } from "../live";
import { useAsk } from "../parts/asking";
import { ChunkedList } from "../parts/chunks";
import { MessageRow } from "../parts/message";
import { Badge, Fill, Heading, Shares } from "../parts/pieces";
import { SessionChoice, SessionWait, useSession } from "../parts/session-choice";
import { Empty, Shown } from "../parts/states";
import { linkTo } from "../router";
import type { LogLine, Part, SessionView } from "../wire";
import { SummaryPanel } from "./summary";
import { TokensOverTime } from "./tokens";

const PAGE = 20;
const SUMMARIES = 12;

export function ConversationPage({ agentId, of, query }: PageProps) {
  const { loaded, sessionId, session } = useSession(agentId, of);
  const [chosen, choose] = useState<Part | null>(null);
  useHappened((news) => {
    if (news.events.some((event) => event.sessionId === sessionId && ["onMessage", "swap", "compress", "forget", "hooks/pre-compaction"].includes(event.verb))) loaded.again();
  });
  if (!session && (loaded.error || loaded.isLoading)) return <SessionWait of={loaded} />;
  if (!sessionId) {
    return (
      <>
        <Heading title="Conversation" />
        <Empty title="No conversation yet">
          Record one with <code>offbook record chat "Hello"</code>, or connect an agent with <code>offbook connect</code>.
        </Empty>
      </>
    );
  }
  const total = session?.lastSeq ?? 0;
  return (
    <>
      <Heading title="Conversation" lead={session ? `${count(total, "message")}, ${compact(session.chars)} characters, ${count(session.generation, "swap")}` : " "}>
        <SessionChoice page="conversation" agentId={agentId} sessionId={sessionId} />
        <a class="button" href={linkTo("turns", sessionId)}>
          Turns
        </a>
        <a class="button" href={linkTo("swaps", sessionId)}>
          Swaps
        </a>
      </Heading>
      {session ? (
        <Talk key={sessionId} agentId={agentId} session={session} start={query.seq ? Number(query.seq) - 1 : -1} chosen={chosen} choose={choose} />
      ) : (
        <Empty title="There is no session of this name">Choose another above, or search for something that was said in it.</Empty>
      )}
    </>
  );
}

function Talk({ agentId, session, start, chosen, choose }: { agentId: string; session: SessionView; start: number; chosen: Part | null; choose: (part: Part | null) => void }) {
  const { sessionId, lastSeq: total } = session;
  const { contextTokens: used = 0, contextWindow: window = 0, swapAtTokens: due = 0 } = session;
  const config = useAsk("config", { agentId });
  const target = targetChars(config.value?.settings, window);
  const context = useAsk("getCompressedContext", target ? { sessionId, agentId, maxChars: target } : null);
  const [place, setPlace] = useState<[number, number]>([0, 0]);
  const [jump, setJump] = useState(start);
  useEffect(() => setJump(start), [start]);
  const parts = context.value?.parts ?? [];
  const shares = useMemo(() => sharesOf(parts), [parts]);
  return (
    <>
      <Fill used={used} of={window} due={due} label="How full the context is" />
      <p class="small muted">
        {`About ${number(used)} of ${number(window)} tokens in use (${percent(used, window)}); a swap is due at ${number(due)}. `}
        After a swap the context would be the band on the left: {count(parts.length, "part")}, {compact(context.value?.chars ?? 0)} characters.
      </p>
      <Shares shares={shares} unit="characters" />
      <details>
        <summary>Tokens over time</summary>
        <TokensOverTime agentId={agentId} session={session} />
      </details>
      <Summaries agentId={agentId} sessionId={sessionId} open={choose} />
      <div class={`talk ${chosen ? "" : "without-panel"}`}>
        <Band parts={parts} total={total} place={place} chosen={chosen} choose={(part) => (choose(part), setJump(part.firstSeq - 1))} />
        <ChunkedList<LogLine>
          name={sessionId}
          total={total}
          size={PAGE}
          start={jump}
          load={(first, signal) => linesOf(session, agentId, first, signal)}
          onPlace={(from, to) => setPlace([from, to])}
          item={(line) => <Line line={line} sessionId={sessionId} />}
          empty={<Empty title="Nothing was said in this session">A session that was started and holds no message yet.</Empty>}
        />
        {chosen && (
          <aside class="talk-panel" aria-label="What stands for this stretch">
            <SummaryPanel agentId={agentId} sessionId={sessionId} part={chosen} close={() => choose(null)} open={choose} />
          </aside>
        )}
      </div>
    </>
  );
}

/** Those that there are, also where all of the session still stands verbatim. */
function Summaries({ agentId, sessionId, open }: { agentId: string; sessionId: string; open: (part: Part) => void }) {
  const [isOpen, setOpen] = useState(false);
  const page = useAsk("summaries", isOpen ? { agentId, sessionId, limit: SUMMARIES } : null);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Summaries of this session</summary>
      {isOpen && (
        <Shown of={page} label="Reading summaries">
          {({ summaries }) => (
            <p class="tools">
              {summaries.map(({ id, level, spans, text }) => {
                const span = spans.find((each) => each.sessionId === sessionId);
                return (
                  <button key={id} type="button" class="link" onClick={() => span && open({ kind: "summary", id, level, firstSeq: span.firstSeq, lastSeq: span.lastSeq, chars: text.length })}>
                    {id}
                  </button>
                );
              })}
              {!summaries.length && <span class="muted">None yet: they are written when the session ends or grows.</span>}
            </p>
          )}
        </Shown>
      )}
    </details>
  );
}

/** An answer of large messages ends early: what is left of the chunk is asked for from there. */
async function linesOf({ sessionId, lastSeq }: SessionView, agentId: string, first: number, signal: AbortSignal): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const end = Math.min(first + PAGE, lastSeq);
  for (let afterSeq = first; afterSeq < end; afterSeq = lines.at(-1)!.seq) {
    const { messages } = await ask("log", { sessionId, agentId, afterSeq, limit: end - afterSeq }, signal);
    if (!messages.length) break;
    lines.push(...messages);
  }
  return lines;
}

function Line({ line, sessionId }: { line: LogLine; sessionId: string }) {
  const redacted = Object.entries(line.redactions ?? {});
  return (
    <div data-row tabIndex={-1}>
      <MessageRow
        message={line.message}
        seq={line.seq}
        at={line.receivedAt}
        notes={
          <>
            {line.noise && <Badge>noise: {line.noise}</Badge>}
            {redacted.length > 0 && <Badge kind="bad">{`redacted: ${redacted.map(([kind]) => kind).join(", ")}`}</Badge>}
          </>
        }
        tools={
          <>
            <a href={linkTo("turns", sessionId, { at: line.receivedAt })}>context then</a>
            <a href={linkTo("forget", sessionId, { seq: line.seq })}>forget…</a>
          </>
        }
      />
    </div>
  );
}

function Band({ parts, total, place, chosen, choose }: { parts: Part[]; total: number; place: [number, number]; chosen: Part | null; choose: (part: Part) => void }) {
  const at = (seq: number) => `${(seq / Math.max(1, total)) * 100}%`;
  return (
    <div class="band" role="group" aria-label="The cover: what stands for each stretch of the session">
      {parts.map((part) => {
        const name = part.kind === "verbatim" ? "verbatim" : (part.id ?? "not summarised yet");
        return (
          <button
            key={`${part.kind}-${part.firstSeq}`}
            type="button"
            class={`part part-${part.kind === "verbatim" ? "verbatim" : `l${Math.min(3, part.level ?? 0)}`}`}
            style={{ top: at(part.firstSeq - 1), height: at(part.lastSeq - part.firstSeq + 1) }}
            aria-pressed={chosen?.firstSeq === part.firstSeq && chosen.kind === part.kind}
            aria-label={`${name}, messages ${part.firstSeq} to ${part.lastSeq}`}
            title={`${name}: messages ${part.firstSeq} to ${part.lastSeq}, ${number(part.chars)} characters`}
            onClick={() => choose(part)}
          >
            {(part.lastSeq - part.firstSeq + 1) / Math.max(1, total) > 0.05 && (part.kind === "verbatim" ? "V" : part.level ? `L${part.level}` : "…")}
          </button>
        );
      })}
      <div class="band-window" style={{ top: at(place[0]), height: at(place[1] - place[0] + 1) }} />
    </div>
  );
}

function sharesOf(parts: Part[]) {
  const sums = new Map<string, number>();
  for (const part of parts) {
    const name = part.kind === "verbatim" ? "verbatim" : part.level ? `L${part.level} summaries` : "stand-ins";
    sums.set(name, (sums.get(name) ?? 0) + part.chars);
  }
  return [...sums].map(([name, value]) => ({ name, value, kind: name.startsWith("L") ? name.slice(0, 2).toLowerCase() : name }));
}

/** What a swap may leave, in characters: the share of the window that the settings say. */
export function targetChars(settings: Record<string, unknown> | undefined, window: number): number | null {
  if (!settings || !window) return null;
  const memory = settings.memory as { compaction?: { targetSize?: number } } | undefined;
  return Math.max(2_000, Math.floor(window * (memory?.compaction?.targetSize ?? 0.4) * 4));
}
