// What was before the model in any past turn, what came to mind and why, and what is different from the turn before.
import { useState } from "preact/hooks";
import { ask } from "../api";
import type { PageProps } from "../app";
import { clock, count, day, number, time } from "../format";
import { useHappened } from "../live";
import { useAction, useAsk } from "../parts/asking";
import { Card, Heading, Tabs } from "../parts/pieces";
import { SessionChoice, SessionWait, useSession } from "../parts/session-choice";
import { Empty, Shown } from "../parts/states";
import { linkTo } from "../router";
import type { AuditEvent } from "../wire";
import { TryPrompt } from "./try-prompt";
import { Turn } from "./turn";

const TURNS = 60;

export function TurnsPage({ agentId, of, query }: PageProps) {
  const { loaded, sessionId, session } = useSession(agentId, of);
  const [tab, setTab] = useState("past");
  if (!session && (loaded.error || loaded.isLoading)) return <SessionWait of={loaded} />;
  return (
    <>
      <Heading title="Turns" lead="The exact bundle that was before the model, and why.">
        {sessionId && <SessionChoice page="turns" agentId={agentId} sessionId={sessionId} />}
      </Heading>
      <Tabs names={[["past", "Past turns"], ["try", "Try a prompt"]]} chosen={tab} choose={setTab} />
      {!sessionId ? (
        <Empty title="No conversation yet">A turn is what an agent asks this memory before each call of its model.</Empty>
      ) : tab === "try" ? (
        <TryPrompt agentId={agentId} sessionId={sessionId} />
      ) : (
        <Past key={sessionId} agentId={agentId} sessionId={sessionId} at={query.at} />
      )}
    </>
  );
}

function Past({ agentId, sessionId, at }: { agentId: string; sessionId: string; at: string | undefined }) {
  const first = useAsk("audit", { agentId, sessionId, verbs: ["prepareTurn"], limit: TURNS });
  const [older, setOlder] = useState<AuditEvent[]>([]);
  useHappened((news) => {
    if (news.events.some((event) => event.verb === "prepareTurn" && event.sessionId === sessionId)) first.again();
  });
  const turns = [...older, ...(first.value?.events ?? [])].filter((event) => !event.details.preview);
  const newestFirst = [...turns].reverse();
  const chosen = at ?? newestFirst[0]?.at;
  const before = chosen && [...turns].reverse().find((event) => new Date(event.at) < new Date(chosen));
  const more = useAction(async () => {
    const page = await ask("audit", { agentId, sessionId, verbs: ["prepareTurn"], limit: TURNS, before: turns[0]!.seq });
    setOlder([...page.events, ...older]);
    return page;
  });
  return (
    <Shown of={first} label="Reading turns">
      {() =>
        !chosen ? (
          <Empty title="No turn was prepared in this session">
            <p>
              A host asks <code>prepareTurn</code> before each call of its model. Without it, open the{" "}
              <a href={linkTo("conversation", sessionId)}>conversation</a> and follow “context then” of any message.
            </p>
          </Empty>
        ) : (
          <div class="split">
            <Card title="Turns" class="turn-list">
              <ul class="rows split-list">
                {newestFirst.map((event) => (
                  <li key={event.seq}>
                    <a data-row class="row" href={linkTo("turns", sessionId, { at: event.at })} aria-current={event.at === chosen ? "true" : undefined}>
                      <span class="row-name">{clock(event.at)}</span>
                      <span class="muted" title={time(event.at)}>{day(event.at)}</span>
                      <span class="muted">
                        {`${count((event.details.entries as unknown[] | undefined)?.length ?? 0, "memory", "memories")} · ${number(Number(event.details.tokens ?? 0))} tokens · ${String(event.details.intent ?? "")}`}
                      </span>
                    </a>
                  </li>
                ))}
                {!newestFirst.length && <li class="muted">No turn was prepared; shown is the context at one message.</li>}
              </ul>
              {turns.length >= TURNS && (
                <button type="button" disabled={more.isRunning} onClick={() => void more.run()}>
                  Older
                </button>
              )}
            </Card>
            <Turn key={chosen} agentId={agentId} sessionId={sessionId} at={chosen} event={turns.find((event) => event.at === chosen) ?? null} before={before || null} />
          </div>
        )
      }
    </Shown>
  );
}
