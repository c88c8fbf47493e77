// One past turn: its bundle, what came to mind, what was considered, the difference to the turn before.
import { useState } from "preact/hooks";
import { ask } from "../api";
import { count, number, time } from "../format";
import { useAction, useAsk } from "../parts/asking";
import { EntryCard } from "../parts/entry";
import { textOf } from "../parts/message";
import { Badge, Card, Facts } from "../parts/pieces";
import { Messages, ReplayBar } from "../parts/replayed";
import { Failure, Progress, Shown } from "../parts/states";
import { How } from "../recall/page";
import type { AuditEvent, Recollection, Replay } from "../wire";

const SHOWN_MESSAGES = 300;

export function Turn({ agentId, sessionId, at, event, before }: { agentId: string; sessionId: string; at: string; event: AuditEvent | null; before: AuditEvent | null }) {
  const replay = useAsk("replay", { sessionId, agentId, at, newest: SHOWN_MESSAGES });
  const ids = (event?.details.entries as string[] | undefined) ?? [];
  const entries = useAsk("entries", ids.length ? { agentId, entryIds: ids } : null);
  return (
    <div>
      <Shown of={replay} label="Putting the context together again">
        {(value) => {
          const memory = (value.turnParts ?? []).reduce((sum, part) => sum + part.tokens, 0);
          const recalled = Math.max(0, Number(event?.details.tokens ?? memory) - memory);
          return (
            <>
              <Card title={`Before the model at ${time(at)}`} tools={value.isExact ? <Badge kind="good">exact</Badge> : <Badge kind="bad">not exact: the host compacted, or more than can be shown</Badge>}>
                <ReplayBar replay={value} recallTokens={recalled} />
                <Facts
                  facts={[
                    ["Context", value.kind === "log" ? "the log as it is: no swap yet" : `generation ${value.generation}, by ${value.kind}`],
                    ["Messages", number(value.messages.length + (value.leftOut ?? 0))],
                    ["Intent", String(event?.details.intent ?? "–")],
                    ["Asked by", event?.actor ?? "–"],
                  ]}
                />
              </Card>
              {before && <Difference agentId={agentId} sessionId={sessionId} now={value} event={event} before={before} />}
              <Card title={`Came to mind: ${count(ids.length, "entry", "entries")}`}>
                {ids.length ? (
                  <Shown of={entries} label="Reading entries">
                    {(found) => (
                      <>
                        {found.entries.map((entry) => (
                          <EntryCard key={entry.id} entry={entry} agentId={agentId} />
                        ))}
                        {found.entries.length < ids.length && <p class="muted">{count(ids.length - found.entries.length, "entry was", "entries were")} forgotten since.</p>}
                      </>
                    )}
                  </Shown>
                ) : (
                  <p class="muted">Nothing: the prompt asked for nothing that is not before the model anyway.</p>
                )}
                <Considered agentId={agentId} sessionId={sessionId} at={at} lastSeq={value.lastSeq} />
              </Card>
              {(value.turnParts ?? []).map((part) => (
                <Card key={part.kind} title={`Memory: ${part.kind}`} tools={<span class="muted">{`${number(part.tokens)} tokens · ${part.why}`}</span>}>
                  <div class="text scroll" tabIndex={0} role="region" aria-label={part.kind}>
                    {part.text}
                  </div>
                </Card>
              ))}
              {value.memory && (
                <Card title="Handed over with the last swap">
                  <div class="text scroll" tabIndex={0} role="region" aria-label="Handed over">
                    {value.memory}
                  </div>
                </Card>
              )}
              <Card title="The messages before the model">
                <Messages messages={value.messages} leftOut={value.leftOut ?? 0} label="The messages before the model" />
              </Card>
            </>
          );
        }}
      </Shown>
    </div>
  );
}

function Difference({ agentId, sessionId, now, event, before }: { agentId: string; sessionId: string; now: Replay; event: AuditEvent | null; before: AuditEvent }) {
  const earlier = useAsk("replay", { sessionId, agentId, at: before.at, newest: SHOWN_MESSAGES });
  return (
    <Card title={`Since the turn before, at ${time(before.at)}`}>
      <Shown of={earlier} label="Comparing">
        {(was) => {
          const had = new Set((before.details.entries as string[] | undefined) ?? []);
          const has = new Set((event?.details.entries as string[] | undefined) ?? []);
          const came = now.messages.slice(now.handedMessages ?? 0).filter((message) => message.id && !was.messages.some((old) => old.id === message.id));
          const facts: string[] = [];
          if (now.generation !== was.generation) facts.push(`the context was swapped, from generation ${was.generation} to ${now.generation}`);
          facts.push(now.lastSeq > was.lastSeq ? `${count(now.lastSeq - was.lastSeq, "new message")}` : "no new message");
          facts.push((now.turnMemory ?? "") === (was.turnMemory ?? "") ? "the memory section is the same, byte for byte: the prompt cache holds" : "the memory section is another one");
          const [fresh, left] = [[...has].filter((id) => !had.has(id)).length, [...had].filter((id) => !has.has(id)).length];
          facts.push(`${count(fresh, "entry", "entries")} came to mind that had not, ${left} no longer did`);
          return (
            <>
              <ul>
                {facts.map((fact) => (
                  <li key={fact}>{fact}</li>
                ))}
              </ul>
              {came.slice(0, 5).map((message) => (
                <p key={message.id} class="text small added">
                  {`+ ${message.role}: ${textOf(message).slice(0, 240)}`}
                </p>
              ))}
            </>
          );
        }}
      </Shown>
    </Card>
  );
}

/** What the search of that moment considered and left out: asked again, as it was known then. */
function Considered({ agentId, sessionId, at, lastSeq }: { agentId: string; sessionId: string; at: string; lastSeq: number }) {
  const [found, setFound] = useState<Recollection | null>(null);
  const [prompt, setPrompt] = useState("");
  const look = useAction(async () => {
    // The turn was prepared for what the user said next.
    const { messages } = await ask("log", { sessionId, agentId, afterSeq: lastSeq, limit: 3 });
    const before = await ask("log", { sessionId, agentId, afterSeq: Math.max(0, lastSeq - 5), limit: 5 });
    const said = messages.find((line) => line.message.role === "user") ?? [...before.messages].reverse().find((line) => line.message.role === "user");
    if (!said) throw new Error("No user message is near this turn, so what was asked for is not known.");
    const text = textOf(said.message).slice(0, 4_000);
    setPrompt(text);
    setFound(await ask("recall", { sessionId, agentId, query: text, at, explain: true, preview: true, limit: 12 }));
  });
  return (
    <>
      {!found && (
        <button type="button" disabled={look.isRunning} onClick={() => void look.run()}>
          What was considered, and left out
        </button>
      )}
      {look.isRunning && <Progress label="Searching as of then" />}
      {look.error && <Failure error={look.error} />}
      {found && (
        <>
          <p class="small">
            Searched again, as it was known then, for: “{prompt.slice(0, 200)}”
          </p>
          {found.entries.map((entry) => (
            <EntryCard key={entry.id} entry={entry} agentId={agentId} />
          ))}
          {found.explained && <How explained={found.explained} />}
        </>
      )}
    </>
  );
}
