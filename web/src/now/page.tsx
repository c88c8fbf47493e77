// What goes on: sessions and how full they are, what happens, what is degraded and how to mend it.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { PageProps } from "../app";
import { ago, clock, compact, count, dollars, number, percent } from "../format";
import { useHappened } from "../live";
import { useAsk } from "../parts/asking";
import { Year } from "../parts/charts";
import { Badge, Card, Fill, Heading, Shares, WithCode } from "../parts/pieces";
import { OlderSessions, useSessions } from "../parts/session-choice";
import { Empty, Shown } from "../parts/states";
import { goTo, linkTo } from "../router";
import type { AuditEvent, SessionView, Status } from "../wire";
import { told, troubles } from "./telling";

const RELOAD_MS = 1_500;
const EVENTS_SHOWN = 25;

const SHOWN_VERBS = ["onMessage", "swap", "compress", "forget", "pin", "unpin", "supersede", "hooks/session-start", "hooks/session-end", "prepareTurn", "lessons/judge"];

// Each part asks for itself: an answer that comes draws nothing but its own part anew.
export function NowPage({ agentId }: PageProps) {
  return (
    <>
      <State agentId={agentId} />
      <YearCard agentId={agentId} />
      <div class="columns">
        <SessionsCard agentId={agentId} />
        <EventsCard agentId={agentId} />
      </div>
    </>
  );
}

/** Asked for once things have calmed down, however many events there are. */
function useCalm(again: () => void) {
  const waiting = useRef<ReturnType<typeof setTimeout> | null>(null);
  useHappened((news) => {
    if (!news.events.length) return;
    waiting.current ??= setTimeout(() => {
      waiting.current = null;
      again();
    }, RELOAD_MS);
  });
  useEffect(() => () => void (waiting.current && clearTimeout(waiting.current)), []);
}

function State({ agentId }: { agentId: string }) {
  const status = useAsk("status", { agentId });
  useCalm(status.again);
  return (
    <>
      <Heading title="Now" lead={status.value ? `Offbook ${status.value.version}, started ${ago(status.value.startedAt)}` : " "} />
      <Shown of={status} label="Counting">
        {(value) => (
          <>
            <Health status={value} />
            <Numbers status={value} />
          </>
        )}
      </Shown>
    </>
  );
}

function YearCard({ agentId }: { agentId: string }) {
  const activity = useAsk("activity", { agentId });
  const days = useMemo(() => new Map((activity.value?.days ?? []).map((each) => [each.day, each.messages])), [activity.value]);
  const total = [...days.values()].reduce((sum, messages) => sum + messages, 0);
  return (
    <Card title="A year of conversation">
      <Shown of={activity} label="Reading the days">
        {() => <Year days={days} name={`${count(total, "message")} on ${count(days.size, "day")} of the last year`} />}
      </Shown>
    </Card>
  );
}

function SessionsCard({ agentId }: { agentId: string }) {
  const { first, sessions, next, older } = useSessions(agentId);
  useCalm(first.again);
  return (
    <Card title="Sessions" tools={first.value && <span class="muted">{count(first.value.total, "session")}</span>}>
      <Shown of={first} label="Reading sessions">
        {() => (sessions.length ? <Sessions sessions={sessions} /> : <FirstSteps agentId={agentId} />)}
      </Shown>
      <OlderSessions next={next} older={older} />
    </Card>
  );
}

function EventsCard({ agentId }: { agentId: string }) {
  const recent = useAsk("audit", { agentId, limit: EVENTS_SHOWN, verbs: SHOWN_VERBS });
  const [fresh, setFresh] = useState<AuditEvent[]>([]);
  useHappened((news) => {
    if (news.events.length) setFresh((was) => [...[...news.events].reverse(), ...was].slice(0, EVENTS_SHOWN));
  });
  const known = new Set(fresh.map((event) => event.seq));
  const events = [...fresh, ...[...(recent.value?.events ?? [])].reverse().filter((event) => !known.has(event.seq))];
  return (
    <Card title="What happens">
      <Shown of={recent} label="Reading what happened">
        {() =>
          events.length ? (
            <ol class="events" aria-live="polite">
              {events.slice(0, EVENTS_SHOWN).map((event) => (
                <li key={event.seq} class={known.has(event.seq) ? "is-new" : ""}>
                  <time dateTime={event.at} title={event.at}>
                    {clock(event.at)}
                  </time>
                  <span>{told(event)}</span>
                  {event.sessionId && <a href={linkTo("conversation", event.sessionId)}>{event.sessionId}</a>}
                </li>
              ))}
            </ol>
          ) : (
            <Empty title="Nothing has happened yet">What agents say and do with this memory appears here at once.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Sessions({ sessions }: { sessions: SessionView[] }) {
  return (
    <ul class="rows">
      {sessions.map((session) => {
        const { contextTokens: used = 0, contextWindow: of = 0, swapAtTokens: due = 0 } = session;
        return (
          <li key={session.sessionId}>
            <a data-row class="row" href={linkTo("conversation", session.sessionId)}>
              <span class="row-name">{session.sessionId}</span>
              <span class="muted">{ago(session.lastAt)}</span>
              <span class="row-fill">
                <Fill used={used} of={of} due={due} label={`Context of ${session.sessionId}`} />
                <span class="muted">
                  {compact(used)} of {compact(of)} tokens · {percent(used, of)}
                </span>
              </span>
              <span class="muted">
                {count(session.lastSeq, "message")}
                {session.generation > 0 && ` · ${count(session.generation, "swap")}`}
                {session.endedAt && " · ended"}
              </span>
            </a>
          </li>
        );
      })}
    </ul>
  );
}

function Numbers({ status }: { status: Status }) {
  const { counts, tiers } = status;
  const facts: [string, string, string, string][] = [
    ["Messages", compact(counts.messages ?? 0), count(counts.sessions ?? 0, "session"), "conversation"],
    ["Summaries", number(Object.values(status.summaries.counts).reduce((sum, each) => sum + each, 0)), Object.entries(status.summaries.counts).map(([level, many]) => `${level} ${many}`).join(" · ") || "none yet", "conversation"],
    ["Lessons", number(Object.values(status.lessons ?? {}).reduce((sum, each) => sum + each, 0)), `${number(status.lessons?.accepted ?? 0)} accepted`, "memory"],
    ["Pinned", number(status.pinned), count(status.retrievals, "retrieval"), "memory"],
    ["Models", compact(status.costs.tokens), `tokens · ${dollars(status.costs.dollars)}`, "care"],
    ["Forgotten", number(status.forgets ?? 0), "receipts kept", "forget"],
  ];
  return (
    <>
      <div class="numbers">
        {facts.map(([name, value, more, page]) => (
          <button key={name} type="button" class="figure" onClick={() => goTo(page)}>
            <span class="muted">{name}</span>
            <strong>{value}</strong>
            <span class="muted">{more}</span>
          </button>
        ))}
      </div>
      <Shares
        unit="messages"
        shares={[
          { name: "hot", value: tiers.hot, kind: "hot" },
          { name: "warm", value: tiers.warm, kind: "warm" },
          { name: "cold", value: tiers.cold, kind: "cold" },
        ]}
      />
    </>
  );
}

function Health({ status }: { status: Status }) {
  const found = troubles(status);
  if (!found.length) {
    return (
      <p class="health">
        <Badge kind="good">All is well</Badge>
        <span class="muted">{status.backlog ? `${count(status.backlog, "step")} of derived work to do` : "all derived work is done"}</span>
      </p>
    );
  }
  return (
    <div class="failure" role="status">
      <strong>{count(found.length, "thing needs", "things need")} a look</strong>
      <ul>
        {found.map((each) => (
          <li key={each.what}>
            <strong>{each.what}</strong> <WithCode text={each.mend} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function FirstSteps({ agentId }: { agentId: string }) {
  const status = useAsk("status", { agentId });
  const others = (status.value?.agents ?? []).filter((each) => each !== agentId);
  return (
    <Empty title={`No conversation of ${agentId} yet`}>
      {others.length > 0 && (
        <p>
          This memory is of other agents, too:{" "}
          {others.map((each) => (
            <a key={each} href={linkTo("now", "", { agent: each })}>
              {each}{" "}
            </a>
          ))}
        </p>
      )}
      <p>Tell this memory something, or connect an agent to it:</p>
      <pre>{'offbook record chat "My cat is called Ada."\noffbook connect\noffbook import --help'}</pre>
    </Empty>
  );
}
