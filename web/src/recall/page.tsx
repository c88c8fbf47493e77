// A search that shows its reasons: scores, evidence, time, corrections; as it was known on any day.
import { useEffect, useState } from "preact/hooks";
import type { PageProps } from "../app";
import { count } from "../format";
import { useAsk } from "../parts/asking";
import { EntryCard } from "../parts/entry";
import { Card, Heading } from "../parts/pieces";
import { SessionDialog, useSession } from "../parts/session-choice";
import { Empty, Shown } from "../parts/states";
import { replacePlace } from "../router";
import type { Explained, MemoryEntry, Recall, Recollection } from "../wire";
import { DayChoice, endOf } from "./day";
import { searchFor, useQuestion } from "./query";

const SHOWN = 30;
const SHOWN_OF_FILTERED = 100;

interface Filters {
  scope: NonNullable<Recall["scope"]>;
  sessionId: string;
  role: string;
  tier: string;
  /** Empty: as it is known now. */
  day: string;
  includeSuperseded: boolean;
}

export function RecallPage({ agentId, query }: PageProps) {
  const { loaded, sessionId: newest } = useSession(agentId, "");
  const question = useQuestion();
  const [filters, setFilters] = useState<Filters>({ scope: "agent", sessionId: "", role: "", tier: "", day: "", includeSuperseded: false });
  // A link to a search works, and its words are taken out of the address at once.
  useEffect(() => {
    if (!query.q) return;
    searchFor(query.q);
    replacePlace("recall");
  }, [query.q]);
  const { scope, day, includeSuperseded, role, tier } = filters;
  const limit = role || tier ? SHOWN_OF_FILTERED : SHOWN;
  const request: Recall = { sessionId: filters.sessionId || newest || "web", agentId, query: question, limit, scope, at: endOf(day), includeSuperseded, explain: true, preview: true };
  const found = useAsk("recall", question && (loaded.value || loaded.error) ? request : null);
  const fits = (entry: MemoryEntry) => (!role || entry.origin.split("+").includes(role)) && (!tier || entry.tier === tier);
  return (
    <>
      <Heading title="Recall" lead="What was said that answers a question, and why it was found. Looking here counts as no retrieval." />
      <Card>
        <Question key={question} asked={question} />
        <FilterForm agentId={agentId} newest={newest} filters={filters} change={(to) => setFilters({ ...filters, ...to })} />
      </Card>
      {question ? (
        <Shown of={found} label="Searching">
          {(answer) => <Found answer={answer} entries={answer.entries.filter(fits)} agentId={agentId} />}
        </Shown>
      ) : (
        <Empty title="Ask something">Type a question above, or press / anywhere.</Empty>
      )}
    </>
  );
}

function Question({ asked }: { asked: string }) {
  const [text, setText] = useState(asked);
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) searchFor(text.trim());
      }}
    >
      <label class="field grow">
        <span>A question, some words, a time (“last Tuesday”)</span>
        <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} placeholder="What is my cat called?" autocomplete="off" />
      </label>
      <button type="submit" class="primary">
        Search
      </button>
    </form>
  );
}

function FilterForm({ agentId, newest, filters, change }: { agentId: string; newest: string; filters: Filters; change: (to: Partial<Filters>) => void }) {
  const [isChoosing, setChoosing] = useState(false);
  const sessionId = filters.sessionId || newest;
  return (
    <div class="form">
      <Choice name="Where" value={filters.scope} choose={(scope) => change({ scope: scope as Filters["scope"] })} options={[["agent", "all sessions"], ["session", "one session"], ["all", "other agents, too"]]} />
      {filters.scope === "session" && (
        <div class="field">
          <span>Session</span>
          <button type="button" class="choice" aria-haspopup="dialog" onClick={() => setChoosing(true)}>
            {sessionId}
          </button>
        </div>
      )}
      <Choice name="Role" value={filters.role} choose={(role) => change({ role })} options={[["", "any"], ["user", "user"], ["assistant", "assistant"], ["tool", "tool"], ["system", "system"]]} />
      <Choice name="Tier" value={filters.tier} choose={(tier) => change({ tier })} options={[["", "any"], ["hot", "hot"], ["warm", "warm"], ["cold", "cold"]]} />
      <DayChoice day={filters.day} choose={(day) => change({ day })} />
      <label class="check">
        <input type="checkbox" checked={filters.includeSuperseded} onChange={(event) => change({ includeSuperseded: event.currentTarget.checked })} /> also what was corrected
      </label>
      {isChoosing && <SessionDialog agentId={agentId} sessionId={sessionId} choose={(id) => change({ sessionId: id })} close={() => setChoosing(false)} />}
    </div>
  );
}

function Found({ answer, entries, agentId }: { answer: Recollection; entries: MemoryEntry[]; agentId: string }) {
  const all = answer.entries.length;
  return (
    <Card title={`${count(entries.length, "entry", "entries")}${entries.length < all ? ` of the best ${all}` : ""}`} tools={<span class="muted">{`${answer.tookMs.toFixed(0)} ms`}</span>}>
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
