// Each swap, before and after, what is no longer in the text, and whether a fact is still there.
import { useState } from "preact/hooks";
import type { PageProps } from "../app";
import { ago, compact, count, number, percent, time } from "../format";
import { useHappened } from "../live";
import { useAsk } from "../parts/asking";
import { textOf } from "../parts/message";
import { Badge, Card, Facts, Heading } from "../parts/pieces";
import { Messages, ReplayBar } from "../parts/replayed";
import { SessionChoice, SessionWait, useSession } from "../parts/session-choice";
import { Empty, Shown } from "../parts/states";
import { linkTo } from "../router";
import type { AuditEvent, Ledger, Replay } from "../wire";

export function SwapsPage({ agentId, of, query }: PageProps) {
  const { loaded, sessionId, session } = useSession(agentId, of);
  const report = useAsk("audit", sessionId ? { agentId, sessionId, verbs: ["swap"], limit: 500 } : null);
  useHappened((news) => {
    if (news.events.some((event) => event.verb === "swap" && event.sessionId === sessionId)) report.again();
  });
  if (!session && (loaded.error || loaded.isLoading)) return <SessionWait of={loaded} />;
  const swaps = [...(report.value?.events ?? [])].reverse().filter((event) => event.details.swapped && event.details.usedTokens !== undefined);
  const chosen = swaps.find((event) => event.at === query.at) ?? swaps[0];
  return (
    <>
      <Heading title="Swaps" lead="What the agent ran on before and after each swap.">
        {sessionId && <SessionChoice page="swaps" agentId={agentId} sessionId={sessionId} />}
      </Heading>
      {sessionId ? (
        <Shown of={report} label="Reading swaps">
          {() =>
            chosen ? (
              <div class="split">
                <Card title={count(swaps.length, "swap")}>
                  <ul class="rows split-list">
                    {swaps.map((event) => (
                      <SwapRow key={event.seq} event={event} sessionId={sessionId} isChosen={event === chosen} />
                    ))}
                  </ul>
                </Card>
                <OneSwap key={chosen.seq} agentId={agentId} sessionId={sessionId} event={chosen} />
              </div>
            ) : (
              <Empty title="No swap in this session yet">
                {session && `About ${number(session.contextTokens ?? 0)} of ${number(session.contextWindow ?? 0)} tokens are in use; it is due at ${number(session.swapAtTokens ?? 0)}.`}
              </Empty>
            )
          }
        </Shown>
      ) : (
        <Empty title="No conversation yet">A swap replaces a full context by a compressed one, without a pause.</Empty>
      )}
    </>
  );
}

function SwapRow({ event, sessionId, isChosen }: { event: AuditEvent; sessionId: string; isChosen: boolean }) {
  return (
    <li>
      <a data-row class="row" href={linkTo("swaps", sessionId, { at: event.at })} aria-current={isChosen ? "true" : undefined}>
        <span class="row-name">Generation {String(event.details.generation)}</span>
        <span class="muted">{ago(event.at)}</span>
        <span class="muted">{`${compact(Number(event.details.usedTokens))} tokens before`}</span>
      </a>
    </li>
  );
}

function OneSwap({ agentId, sessionId, event }: { agentId: string; sessionId: string; event: AuditEvent }) {
  const [fact, setFact] = useState("");
  const justBefore = new Date(new Date(event.at).getTime() - 1).toISOString();
  // The event is written with the hand-over, a moment after the context's own time.
  const after = useAsk("replay", { sessionId, agentId, at: event.at, newest: 500 });
  const start = after.value?.handedAt ? new Date(new Date(after.value.handedAt).getTime() - 1).toISOString() : justBefore;
  const before = useAsk("replay", after.value ? { sessionId, agentId, at: start, newest: 500 } : null);
  return (
    <div>
      <Shown of={after} label="Putting the contexts together again">
        {(value) => (
          <>
            <Card title={`Swapped at ${time(event.at)}`} tools={<span class="muted">{String(event.details.reason ?? "")}</span>}>
              <Facts
                facts={[
                  ["Before", `${number(value.usedTokens ?? 0)} tokens`],
                  ["After", `${number(value.tokensAfter ?? 0)} tokens`],
                  ["Freed", percent((value.usedTokens ?? 0) - (value.tokensAfter ?? 0), value.usedTokens ?? 0)],
                  ["Window", `${number(value.contextWindow ?? 0)} tokens`],
                  ["No longer in the text", count(value.ledger?.droppedCount ?? 0, "particular")],
                ]}
              />
              <label class="field">
                <span>Is my fact still there? Search both contexts</span>
                <input type="search" value={fact} onInput={(each) => setFact(each.currentTarget.value)} placeholder="a name, a number, a file" />
              </label>
              {fact.trim().length > 1 && <Fact fact={fact.trim()} after={value} before={before.value} />}
            </Card>
            <div class="halves">
              <Card title="Before">
                <Shown of={before} label="Reading">
                  {(was) => (
                    <>
                      <ReplayBar replay={was} />
                      <Messages messages={was.messages} leftOut={was.leftOut ?? 0} needle={fact.trim()} label="Before the swap" />
                    </>
                  )}
                </Shown>
              </Card>
              <Card title="After">
                <ReplayBar replay={value} />
                <Messages messages={value.messages} needle={fact.trim()} label="After the swap" />
              </Card>
            </div>
            {value.ledger && <LedgerCard ledger={value.ledger} />}
          </>
        )}
      </Shown>
    </div>
  );
}

function Fact({ fact, after, before }: { fact: string; after: Replay; before: Replay | null }) {
  const wanted = fact.toLowerCase();
  const places = (replay: Replay) => [replay.memory, ...replay.messages.map(textOf)].join("\n").toLowerCase().split(wanted).length - 1;
  const there = places(after);
  const dropped = (after.ledger?.dropped ?? []).filter((each) => each.text.toLowerCase().includes(wanted));
  return (
    <p role="status">
      <Badge kind={there ? "good" : "bad"}>{there ? `still there, ${count(there, "time")}` : "not in the new text"}</Badge>{" "}
      {before && `${count(places(before), "time")} before the swap. `}
      {dropped.map((each) => (
        <span key={`${each.sessionId}-${each.seq}`}>
          It was dropped from <a href={linkTo("conversation", each.sessionId, { seq: each.seq })}>{`message ${each.seq}`}</a>
          {each.expand ? `; ${each.expand} stands for it. ` : ". "}
        </span>
      ))}
    </p>
  );
}

function LedgerCard({ ledger }: { ledger: Ledger }) {
  const { dropped = [], droppedCount = 0, state = [] } = ledger;
  return (
    <Card title="The ledger">
      {state.length > 0 && (
        <>
          <h3>Carried outside the prose</h3>
          <ul>
            {state.map((each, at) => (
              <li key={at}>
                <Badge>{each.kind}</Badge> {each.text}
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>No longer in the text: {number(droppedCount)}</h3>
      {dropped.length ? (
        <div class="table-scroll scroll" tabIndex={0} role="region" aria-label="No longer in the text">
          <table>
            <tbody>
              {dropped.map((each, at) => (
                <tr key={at}>
                  <td>
                    <Badge>{each.kind}</Badge>
                  </td>
                  <td>{each.text}</td>
                  <td>
                    <a href={linkTo("conversation", each.sessionId, { seq: each.seq })}>#{each.seq}</a> {each.expand}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <p class="muted">Nothing particular was dropped.</p>
      )}
    </Card>
  );
}
