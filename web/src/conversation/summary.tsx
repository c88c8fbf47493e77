// A summary beside what it stands for: its sources word for word, what it kept and lost, who wrote it, what it cost.
import { useState } from "preact/hooks";
import { ask } from "../api";
import { compact, count, dollars, number, percent, time } from "../format";
import { useHappened } from "../live";
import { useAction, useAsk } from "../parts/asking";
import { Marked, MessageRow } from "../parts/message";
import { Badge, Facts } from "../parts/pieces";
import { Failure, Progress, Shown } from "../parts/states";
import type { Loss, Part, SourceLine, SummaryView } from "../wire";

export function SummaryPanel({ agentId, sessionId, part, close, open }: { agentId: string; sessionId: string; part: Part; close: () => void; open: (part: Part) => void }) {
  const head = (
    <div class="card-head">
      <h2>{part.id ?? (part.kind === "verbatim" ? "Verbatim" : "Stand-in")}</h2>
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  );
  if (!part.id) {
    return (
      <>
        {head}
        <p>
          Messages {number(part.firstSeq)} to {number(part.lastSeq)} {part.kind === "verbatim" ? "stand in the context word for word" : "do not fit: a line stands for them until they are summarised"}, in {compact(part.chars)} characters.
        </p>
      </>
    );
  }
  return (
    <>
      {head}
      <Summary key={part.id} agentId={agentId} sessionId={sessionId} id={part.id} open={open} />
    </>
  );
}

function Summary({ agentId, sessionId, id, open }: { agentId: string; sessionId: string; id: string; open: (part: Part) => void }) {
  const page = useAsk("summaries", { agentId, ids: [id] });
  const [needle, setNeedle] = useState("");
  const again = useAction(() => ask("compress", { agentId, sessionId, again: true }));
  const [told, setTold] = useState("");
  useHappened((news) => {
    if (!news.events.some((event) => event.details.id === id)) return;
    setTold("");
    page.again();
  });
  return (
    <Shown of={page} label="Reading the summary">
      {({ summaries: [view] }) =>
        view ? (
          <>
            <p class="text">
              <Marked text={view.text} needle={needle} />
            </p>
            <About view={view} />
            <Instructions view={view} />
            <div class="tools">
              <button
                type="button"
                disabled={again.isRunning}
                onClick={async () => {
                  const answer = await again.run();
                  if (answer) setTold(answer.again ? `${count(answer.again, "summary", "summaries")} will be written again by ${answer.summarizer}, in the background.` : `Nothing to write again: no better summarizer than ${view.summarizer} is available now.`);
                }}
              >
                Write again
              </button>
              {view.parent && <Jump id={view.parent} view={view} open={open} name="Merged in" />}
              {view.sources.map((source) => (
                <Jump key={source} id={source} view={view} open={open} name="Merges" />
              ))}
            </div>
            {again.error && <Failure error={again.error} />}
            {told && <p role="status">{told}</p>}
            <Particulars title="Kept" losses={view.kept ?? []} total={view.kept?.length ?? 0} find={setNeedle} />
            <Particulars title="Lost" losses={view.losses} total={view.lost} find={setNeedle} />
            <Sources agentId={agentId} id={id} />
          </>
        ) : (
          <p>This summary is no longer there.</p>
        )
      }
    </Shown>
  );
}

function Jump({ id, view, open, name }: { id: string; view: SummaryView; open: (part: Part) => void; name: string }) {
  const span = view.spans[0];
  if (!span) return null;
  const level = Number(id.slice(1, 2));
  return (
    <button type="button" class="link" onClick={() => open({ kind: "summary", id, level, firstSeq: span.firstSeq, lastSeq: span.lastSeq, chars: 0 })}>
      {name} {id}
    </button>
  );
}

function About({ view }: { view: SummaryView }) {
  const used = (view.usage.inputTokens ?? 0) + (view.usage.outputTokens ?? 0);
  return (
    <Facts
      facts={[
        ["Level", `L${view.level}`],
        ["Stands for", `${count(view.sourceMessages, "message")}, ${compact(view.sourceTokens)} tokens`],
        ["Takes", `${number(view.tokens)} tokens (${percent(view.tokens, view.sourceTokens)})`],
        ["Written by", view.summarizer],
        ["Prompt", view.promptVersion],
        ["Written", time(view.madeAt)],
        ["Cost", used ? `${compact(used)} tokens, ${dollars(view.usage.dollars ?? 0)}` : "nothing"],
        ["From the cache", percent(view.usage.cachedTokens ?? 0, view.usage.inputTokens ?? 0)],
        ["Said", `${time(view.firstAt)} to ${time(view.lastAt)}`],
      ]}
    />
  );
}

function Instructions({ view }: { view: SummaryView }) {
  if (!view.instructions) return null;
  return (
    <details>
      <summary>What {view.summarizer} was asked</summary>
      <p class="muted small">After its memories of what came before and the sources below, word for word:</p>
      <p class="text">{view.instructions}</p>
    </details>
  );
}

function Particulars({ title, losses, total, find }: { title: string; losses: Loss[]; total: number; find: (text: string) => void }) {
  if (!total) return <p class="muted small">{title}: none.</p>;
  return (
    <details>
      <summary>{`${title}: ${count(total, "particular")}`}</summary>
      <ul class="rows">
        {losses.map((loss, at) => (
          <li key={at}>
            <Badge>{loss.kind}</Badge>{" "}
            <button type="button" class="link" onClick={() => find(loss.text)}>
              {loss.text}
            </button>{" "}
            <span class="muted small">#{loss.seq}</span>
          </li>
        ))}
      </ul>
      {total > losses.length && <p class="muted small">The newest {losses.length} are shown.</p>}
    </details>
  );
}

function Sources({ agentId, id }: { agentId: string; id: string }) {
  const [lines, setLines] = useState<SourceLine[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const more = useAction(async () => {
    const page = await ask("expand", { agentId, summaryId: id, after: next, limit: 30 });
    setLines([...(lines ?? []), ...page.messages]);
    setNext(page.next ?? null);
  });
  return (
    <section aria-label="Sources">
      {lines?.map((line) => <MessageRow key={`${line.sessionId}-${line.seq}`} message={line.message} seq={line.seq} at={line.receivedAt} />)}
      {more.error && <Failure error={more.error} />}
      {more.isRunning ? (
        <Progress label="Reading the sources" />
      ) : (
        (lines === null || next) && (
          <button type="button" onClick={() => void more.run()}>
            {lines === null ? "Show its sources word for word" : "More"}
          </button>
        )
      )}
    </section>
  );
}
