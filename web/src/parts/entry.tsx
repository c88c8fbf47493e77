// An entry of memory: what was said, how well it answers, why it was found, and what can be done with it.
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api";
import { ago, time } from "../format";
import { useAction } from "./asking";
import { Marked } from "./message";
import { Badge } from "./pieces";
import { Failure } from "./states";
import { linkTo } from "../router";
import type { MemoryEntry, Why } from "../wire";

export function EntryCard({ entry, agentId, needle = "", changed }: { entry: MemoryEntry; agentId: string; needle?: string; changed?: () => void }) {
  const [isPinned, setPinned] = useState(entry.pinned);
  const [isLinked, setLinked] = useState(Boolean(entry.supersededBy));
  // Of the same entry, another answer may say otherwise, as on another day.
  useEffect(() => {
    setPinned(entry.pinned);
    setLinked(Boolean(entry.supersededBy));
  }, [entry]);
  const pin = useAction(async () => {
    const asked = { agentId, entryIds: [entry.id] };
    await (isPinned ? ask("unpin", asked) : ask("pin", asked));
    setPinned(!isPinned);
    changed?.();
  });
  const unlink = useAction(async () => {
    await ask("unlink", { agentId, entryId: entry.id });
    setLinked(false);
    changed?.();
  });
  const mine = entry.agentId === agentId;
  return (
    <article class={`entry ${isLinked ? "replaced" : ""}`} data-row tabIndex={-1}>
      <div class="entry-head">
        {entry.score >= 0 && entry.foundBy.length > 0 && (
          <span class="score" title={`Score ${entry.score.toFixed(3)}`}>
            <meter min={0} max={1} value={entry.score} aria-label="Score" /> {entry.score.toFixed(2)}
          </span>
        )}
        <Badge kind={entry.tier}>{entry.tier}</Badge>
        <span>{entry.origin}</span>
        <time dateTime={entry.ts} title={ago(entry.ts)}>
          {time(entry.ts)}
        </time>
        <a href={linkTo("conversation", entry.sessionId, { seq: entry.span.firstSeq })}>
          {entry.sessionId} #{entry.span.firstSeq}
        </a>
        {!mine && <Badge kind="accent">of {entry.agentId}</Badge>}
        {entry.foundBy.map((by) => (
          <Badge key={by}>{by}</Badge>
        ))}
        <span class="grow" />
        {mine && (
          <>
            <button type="button" disabled={pin.isRunning} onClick={() => void pin.run()}>
              {isPinned ? "Unpin" : "Pin"}
            </button>
            <a class="button" href={linkTo("forget", "", { entry: entry.id })}>
              Forget…
            </a>
          </>
        )}
      </div>
      <p class="text">
        <Marked text={entry.text} needle={needle} />
      </p>
      {isLinked && (
        <p class="small">
          <Badge kind="bad">replaced since</Badge> A later message took its place.{" "}
          <button type="button" class="link" disabled={unlink.isRunning} onClick={() => void unlink.run()}>
            It holds after all
          </button>
        </p>
      )}
      {entry.followedBy && <p class="small muted">Something said later may be about the same; both hold.</p>}
      {entry.why && <WhyFound why={entry.why} />}
      {(pin.error || unlink.error) && <Failure error={(pin.error ?? unlink.error)!} />}
    </article>
  );
}

function WhyFound({ why }: { why: Why }) {
  const evidence = Object.entries(why.evidence ?? {}).sort(([, a], [, b]) => Math.abs(b) - Math.abs(a));
  const most = Math.max(0.001, ...evidence.map(([, value]) => Math.abs(value)));
  return (
    <>
      {why.replaces?.map((old) => (
        <p key={old.id} class="small muted">
          replaces: “{old.text}” ({time(old.ts)})
        </p>
      ))}
      {(evidence.length > 0 || Object.keys(why.ranks ?? {}).length > 0) && (
        <details>
          <summary class="small">
            Why: {reasons(why).join(", ") || "its evidence"}
          </summary>
          <div class="evidence">
            {evidence.map(([name, value]) => (
              <EvidenceRow key={name} name={name} value={value} most={most} />
            ))}
          </div>
        </details>
      )}
    </>
  );
}

function reasons(why: Why): string[] {
  const found = Object.entries(why.ranks ?? {}).map(([by, rank]) => `${by} #${rank}`);
  if (why.similarity != null) found.push(`similarity ${why.similarity.toFixed(2)}`);
  if (why.probability != null) found.push(`probability ${why.probability.toFixed(2)}`);
  return found;
}

function EvidenceRow({ name, value, most }: { name: string; value: number; most: number }) {
  return (
    <>
      <span>{name.replaceAll("_", " ")}</span>
      <span class="track">
        <i class={value < 0 ? "against" : ""} style={{ left: "0", width: `${(Math.abs(value) / most) * 100}%` }} />
      </span>
      <span>{value.toFixed(2)}</span>
    </>
  );
}
