// The tokens of a session's context over time, with its swaps: read from the audit chain, which has the sizes.
import { clock, count, day, number, tokensOf } from "../format";
import { useAsk } from "../parts/asking";
import { Line, type Point } from "../parts/charts";
import { Shown } from "../parts/states";
import type { AuditEvent, SessionView } from "../wire";

const DAY_MS = 86_400_000;

export function TokensOverTime({ agentId, session }: { agentId: string; session: SessionView }) {
  const report = useAsk("audit", { agentId, sessionId: session.sessionId, limit: 1000, verbs: ["onMessage", "swap", "hooks/pre-compaction", "import"] });
  return (
    <Shown of={report} label="Reading the chain">
      {({ events }) => {
        const { points, swaps } = series(events, session);
        return points.length < 2 ? (
          <p class="muted">There is a line here as soon as messages came at two times.</p>
        ) : (
          <>
            <Line
              name={`Tokens in the context of ${session.sessionId}, ${count(swaps.length, "swap")}`}
              points={points}
              marks={swaps}
              level={{ y: session.swapAtTokens ?? 0, title: `a swap is due at ${number(session.swapAtTokens ?? 0)}` }}
              format={points.at(-1)!.x - points[0]!.x < 2 * DAY_MS ? (x) => clock(new Date(x)) : (x) => day(new Date(x))}
            />
            <p class="small muted">{swaps.length ? `Each upright line is a swap: ${number(swaps.length)}. The dashed one is where a swap is due.` : "No swap yet."}</p>
          </>
        );
      }}
    </Shown>
  );
}

function series(events: AuditEvent[], session: SessionView): { points: Point[]; swaps: { x: number; title: string }[] } {
  const points: Point[] = [];
  const swaps: { x: number; title: string }[] = [];
  const came = events.reduce((sum, event) => sum + Number(event.details.accepted ? (event.details.chars ?? 0) : 0), 0);
  // What came before the events that are shown is in the context until the first swap among them.
  let tokens = tokensOf(Math.max(0, session.chars - came));
  for (const event of events) {
    const x = new Date(event.at).getTime();
    const details = event.details as { accepted?: number; chars?: number; swapped?: boolean; usedTokens?: number; generation?: number };
    if (event.verb === "swap") {
      if (!details.swapped || details.usedTokens === undefined) continue;
      points.push({ x, y: details.usedTokens });
      tokens = tokensOf(details.chars ?? 0);
      swaps.push({ x, title: `Generation ${details.generation}: ${number(details.usedTokens)} to ${number(tokens)} tokens` });
    } else tokens += tokensOf(details.accepted ? (details.chars ?? 0) : 0);
    points.push({ x, y: tokens });
  }
  return { points, swaps };
}
