// What was learnt and what is held: lessons, topics, anchors, open tasks, pins; each with where it was said.
import { useState } from "preact/hooks";
import type { PageProps } from "../app";
import { ago, count, number, percent } from "../format";
import { useAsk } from "../parts/asking";
import { EntryCard } from "../parts/entry";
import { Badge, Card, Heading, Shares, Tabs } from "../parts/pieces";
import { Empty, Shown } from "../parts/states";
import { searchFor } from "../recall/query";
import { linkTo } from "../router";
import { Lessons } from "./lessons";

export function MemoryPage({ agentId }: PageProps) {
  const [tab, setTab] = useState("lessons");
  return (
    <>
      <Heading title="Memory" lead="What this agent learnt and holds on to, each with where it was said." />
      <Tabs
        names={[
          ["lessons", "Lessons"],
          ["state", "Open tasks"],
          ["topics", "Topics"],
          ["anchors", "Anchors"],
          ["pins", "Pins"],
          ["tiers", "Tiers"],
        ]}
        chosen={tab}
        choose={setTab}
      />
      {tab === "lessons" && <Lessons agentId={agentId} />}
      {tab === "state" && <Working agentId={agentId} />}
      {tab === "topics" && <Topics agentId={agentId} />}
      {tab === "anchors" && <Anchors agentId={agentId} />}
      {tab === "pins" && <Pins agentId={agentId} />}
      {tab === "tiers" && <Tiers agentId={agentId} />}
    </>
  );
}

function Working({ agentId }: { agentId: string }) {
  const state = useAsk("state", { agentId });
  return (
    <Card title="Open tasks and goals">
      <Shown of={state} label="Reading">
        {(value) =>
          value.working.some((each) => each.records.length) ? (
            <>
              {value.working.map((session) => (
                <div key={session.sessionId}>
                  <h3>
                    <a href={linkTo("conversation", session.sessionId)}>{session.sessionId}</a> <span class="muted">{ago(session.lastAt)}</span>
                  </h3>
                  <ul>
                    {session.records.map((record, at) => (
                      <li key={at}>
                        <Badge>{record.kind}</Badge> {record.text} <Where sessionId={session.sessionId} seq={record.firstSeq} />
                      </li>
                    ))}
                  </ul>
                </div>
              ))}
            </>
          ) : (
            <Empty title="No open task">What they set out to do, and have not done yet, appears here.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Topics({ agentId }: { agentId: string }) {
  const topics = useAsk("topics", { agentId });
  return (
    <Card title="Topics">
      <Shown of={topics} label="Reading">
        {(value) =>
          value.topics.length ? (
            <div class="table-scroll">
              <table>
                <thead>
                  <tr>
                    <th>Topic</th>
                    <th class="number">Turns</th>
                    <th class="number">Sessions</th>
                    <th>Freshness</th>
                    <th>Last</th>
                  </tr>
                </thead>
                <tbody>
                  {value.topics.map((topic) => (
                    <tr key={topic.label}>
                      <td>
                        <button type="button" class="link" onClick={() => searchFor(topic.label)}>
                          {topic.label}
                        </button> {topic.isFixated && <Badge kind="accent">keeps returning</Badge>} {topic.isStale && <Badge>left</Badge>}
                      </td>
                      <td class="number">{number(topic.total)}</td>
                      <td class="number">{number(topic.sessions ?? 1)}</td>
                      <td>
                        <meter min={0} max={1} value={topic.freshness} aria-label={`Freshness of ${topic.label}`} />
                      </td>
                      <td>{ago(topic.lastAt)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty title="No topics yet">What they talk about and return to appears here after some turns.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Anchors({ agentId }: { agentId: string }) {
  const anchors = useAsk("anchors", { agentId });
  return (
    <Card title="Anchors: who they are, what does not fit together, what is unresolved">
      <Shown of={anchors} label="Reading">
        {(value) =>
          value.anchors.length ? (
            <ul class="rows">
              {value.anchors.map((anchor, at) => (
                <li key={at} class="entry">
                  <Badge kind={anchor.kind === "identity" ? "good" : "bad"}>{anchor.kind}</Badge> {anchor.text} <Where sessionId={anchor.sessionId} seq={anchor.seq} />{" "}
                  <span class="muted small">
                    {ago(anchor.at)}
                    {(anchor.times ?? 1) > 1 && `, ${count(anchor.times ?? 1, "time")}`}
                  </span>
                </li>
              ))}
            </ul>
          ) : (
            <Empty title="No anchors yet">Sentences such as “I am a nurse” become anchors.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Pins({ agentId }: { agentId: string }) {
  const pins = useAsk("entries", { agentId });
  return (
    <Card title="Pins">
      <Shown of={pins} label="Reading">
        {(value) =>
          value.entries.length ? (
            <>
              {value.entries.map((entry) => (
                <EntryCard key={entry.id} entry={entry} agentId={agentId} changed={pins.again} />
              ))}
            </>
          ) : (
            <Empty title="Nothing is pinned">
              Find something with <a href={linkTo("recall")}>Recall</a> and pin it: it stays hot for ever.
            </Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Tiers({ agentId }: { agentId: string }) {
  const status = useAsk("status", { agentId });
  return (
    <Card title="Tiers">
      <Shown of={status} label="Counting">
        {({ tiers, hotHours, index }) => (
          <>
            <Shares
              unit="messages"
              shares={[
                { name: "hot", value: tiers.hot, kind: "hot" },
                { name: "warm", value: tiers.warm, kind: "warm" },
                { name: "cold", value: tiers.cold, kind: "cold" },
              ]}
            />
            <p>
              {hotHours && `A message stays hot for ${hotHours.base} hours, ${hotHours.bump} more for each retrieval, at most ${hotHours.most}; a pinned one for ever. `}
              {`${number(index.embedded)} of ${number(index.entries)} entries (${percent(index.embedded, index.entries)}) are found by meaning, too.`}
            </p>
          </>
        )}
      </Shown>
    </Card>
  );
}

export function Where({ sessionId, seq }: { sessionId: string; seq: number }) {
  return (
    <a class="small" href={linkTo("conversation", sessionId, { seq })}>
      {sessionId} #{seq}
    </a>
  );
}
