// What models cost by day, how much of it the prompt cache gave, and how long recalls take.
import { metrics } from "../api";
import { count, dollars, number, percent } from "../format";
import { useAsk, useLoad } from "../parts/asking";
import { Bars } from "../parts/charts";
import { Card } from "../parts/pieces";
import { Shown } from "../parts/states";
import type { Day } from "../wire";

export function Spending({ agentId }: { agentId: string }) {
  const activity = useAsk("activity", { agentId, days: 60 });
  return (
    <Card title="The last 60 days">
      <Shown of={activity} label="Reading the days">
        {({ days }) => {
          const all = everyDay(days, 60);
          const used = days.map((each) => each.usage).filter((each) => each !== undefined);
          const [read, cached, spent] = [sum(used.map((each) => each.inputTokens ?? 0)), sum(used.map((each) => each.cachedTokens ?? 0)), sum(used.map((each) => each.dollars ?? 0))];
          return (
            <>
              <h3>Messages a day</h3>
              <Bars name="Messages a day" unit="messages" bars={all.map((each) => ({ label: each.day, value: each.messages }))} />
              <h3>Spend a day</h3>
              {spent > 0 ? (
                <Bars name="Dollars a day" bars={all.map((each) => ({ label: each.day, value: each.usage?.dollars ?? 0, title: `${each.day}: ${dollars(each.usage?.dollars ?? 0)}` }))} />
              ) : (
                <p class="muted">No model was paid: summaries are made of quotes, or by a model of your own machine.</p>
              )}
              <p class="small">{`${dollars(spent)} in 60 days; ${percent(cached, read)} of what models read came from the prompt cache.`}</p>
            </>
          );
        }}
      </Shown>
    </Card>
  );
}

function everyDay(days: Day[], many: number): Day[] {
  const known = new Map(days.map((each) => [each.day, each]));
  return Array.from({ length: many }, (_, at) => {
    const day = new Date(Date.now() - (many - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return known.get(day) ?? { day, messages: 0, chars: 0 };
  });
}

function sum(values: number[]): number {
  return values.reduce((so, value) => so + value, 0);
}

const VERBS = ["recall", "prepareTurn", "onMessage"];

export function Latency() {
  const text = useLoad("metrics", metrics);
  return (
    <Card title="How long answers take">
      {text.error ? (
        <p class="muted">These counters are of all agents: the owner's page shows them.</p>
      ) : (
        <Shown of={text} label="Reading counters">
          {(page) => (
            <>
              {VERBS.map((verb) => {
                const { bars, total } = histogram(page, verb);
                return (
                  <div key={verb}>
                    <h3>{verb}</h3>
                    {total ? <Bars name={`Time of ${verb}`} bars={bars} height={70} /> : <p class="muted">Not asked for since the provider started.</p>}
                    {total > 0 && <p class="small muted">{`${count(total, "answer")}, half within ${half(bars, total)}`}</p>}
                  </div>
                );
              })}
            </>
          )}
        </Shown>
      )}
    </Card>
  );
}

interface Bucket {
  label: string;
  value: number;
  title: string;
}

/** The buckets of Prometheus count up; a bar is what a bucket adds. */
function histogram(page: string, verb: string): { bars: Bucket[]; total: number } {
  const bars: Bucket[] = [];
  let before = 0;
  for (const line of page.split("\n")) {
    const found = /^offbook_request_seconds_bucket\{le="([^"]+)",verb="([^"]+)"\} (\S+)/.exec(line);
    if (!found || found[2] !== verb) continue;
    const label = found[1] === "+Inf" ? "more" : `${number(Number(found[1]) * 1e6) === "0" ? 0 : Number(found[1]) * 1000} ms`;
    const value = Number(found[3]) - before;
    before = Number(found[3]);
    bars.push({ label, value, title: `up to ${label}: ${number(value)}` });
  }
  while (bars.length > 1 && bars.at(-1)!.value === 0) bars.pop();
  return { bars, total: before };
}

function half(bars: Bucket[], total: number): string {
  let so = 0;
  return bars.find((bar) => (so += bar.value) >= total / 2)?.label ?? "–";
}
