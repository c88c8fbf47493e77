// A search that shows its reasons: scores, evidence, time, corrections; as it was known on any day.
import { useMemo, useState } from "preact/hooks";
import type { PageProps } from "../app";
import { count, day } from "../format";
import { useAsk } from "../parts/asking";
import { EntryCard } from "../parts/entry";
import { Card, Heading } from "../parts/pieces";
import { useSessionChoice } from "../parts/session-choice";
import { Empty, Shown } from "../parts/states";
import { goTo } from "../router";
import type { Explained, MemoryEntry, Recall } from "../wire";

const DAY = 86_400_000;

export function RecallPage({ agentId, query }: PageProps) {
  const { offered, sessions } = useSessionChoice(agentId, "");
  const [text, setText] = useState(query.q ?? "");
  const [asked, setAsked] = useState(query.q ?? "");
  if (query.q && query.q !== asked) {
    setAsked(query.q);
    setText(query.q);
  }
  const [scope, setScope] = useState<Recall["scope"]>("agent");
  const [sessionId, setSessionId] = useState("");
  const [role, setRole] = useState("");
  const [tier, setTier] = useState("");
  const [back, setBack] = useState(0);
  const [settled, setSettled] = useState(0);
  const [all, setAll] = useState(false);
  const session = sessionId || offered[0]?.sessionId || "web";
  const oldest = useMemo(() => Math.min(Date.now(), ...offered.map((each) => new Date(each.startedAt).getTime())), [offered]);
  const days = Math.max(30, Math.ceil((Date.now() - oldest) / DAY) + 1);
  const at = settled ? new Date(Math.floor(Date.now() / DAY) * DAY - (settled - 1) * DAY - 1000).toISOString() : undefined;
  const found = useAsk("recall", asked && sessions.value ? { sessionId: session, agentId, query: asked, limit: 30, scope, at: at ?? null, includeSuperseded: all, explain: true, preview: true } : null);
  const fits = (entry: MemoryEntry) => (!role || entry.origin.split("+").includes(role)) && (!tier || entry.tier === tier);
  return (
    <>
      <Heading title="Recall" lead="What was said that answers a question, and why it was found. Looking here counts as no retrieval." />
      <Card>
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            if (text.trim()) goTo("recall", "", { q: text.trim() });
          }}
        >
          <label class="field grow">
            <span>A question, some words, a time (“last Tuesday”)</span>
            <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} placeholder="What is my cat called?" />
          </label>
          <button type="submit" class="primary">
            Search
          </button>
        </form>
        <div class="form">
          <Choice name="Where" value={scope ?? "agent"} choose={(value) => setScope(value as Recall["scope"])} options={[["agent", "all sessions"], ["session", "one session"], ["all", "other agents, too"]]} />
          {scope === "session" && <Choice name="Session" value={session} choose={setSessionId} options={offered.map((each) => [each.sessionId, each.sessionId])} />}
          <Choice name="Role" value={role} choose={setRole} options={[["", "any"], ["user", "user"], ["assistant", "assistant"], ["tool", "tool"], ["system", "system"]]} />
          <Choice name="Tier" value={tier} choose={setTier} options={[["", "any"], ["hot", "hot"], ["warm", "warm"], ["cold", "cold"]]} />
          <label class="field grow">
            <span>{back ? `As it was known on ${day(new Date(Date.now() - back * DAY))}` : "As it is known now"}</span>
            <input type="range" min={0} max={days} value={days - back} onInput={(event) => setBack(days - Number(event.currentTarget.value))} onChange={(event) => setSettled(days - Number(event.currentTarget.value))} />
          </label>
          <label>
            <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> also what was corrected
          </label>
        </div>
      </Card>
      {asked ? (
        <Shown of={found} label="Searching">
          {(answer) => {
            const entries = answer.entries.filter(fits);
            return (
              <Card
                title={`${count(entries.length, "entry", "entries")}${entries.length < answer.entries.length ? ` of ${answer.entries.length}` : ""}`}
                tools={<span class="muted">{`${answer.tookMs.toFixed(0)} ms`}</span>}
              >
                {answer.degraded.map((why) => (
                  <p key={why} class="failure" role="status">
                    {why}
                  </p>
                ))}
                {entries.map((entry) => (
                  <EntryCard key={entry.id} entry={entry} agentId={agentId} />
                ))}
                {!entries.length && <Empty title="Nothing was found">Try other words, a wider place, or a later day.</Empty>}
                {answer.explained && <How explained={answer.explained} />}
              </Card>
            );
          }}
        </Shown>
      ) : (
        <Empty title="Ask something">Type a question above, or press / anywhere.</Empty>
      )}
    </>
  );
}

function Choice({ name, value, choose, options }: { name: string; value: string; choose: (value: string) => void; options: [string, string][] }) {
  return (
    <label class="field">
      <span>{name}</span>
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {options.map(([id, text]) => (
          <option key={id} value={id}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function How({ explained }: { explained: Explained }) {
  return (
    <details>
      <summary>How it was found</summary>
      <p class="small">
        Words searched for: {explained.lookedFor.join(", ") || "none"}. {explained.times.length > 0 && `Times understood: ${explained.times.join(", ")}. `}
        {`${count(explained.lookedAt, "candidate")} looked at, ${explained.leftOut.length} of the best left out.`}
      </p>
      {explained.leftOut.length > 0 && (
        <ul class="small">
          {explained.leftOut.slice(0, 40).map((each) => (
            <li key={each.id}>
              {each.id}: {each.why}
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}
