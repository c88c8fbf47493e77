// What models cost by day, how much of it the prompt cache gave, and how long recalls take.
import { metrics } from "../api";
import { count, day, dollars, percent } from "../format";
import { useAsk, useLoad } from "../parts/asking";
import { type Bar, Bars } from "../parts/charts";
import { Card } from "../parts/pieces";
import { Shown } from "../parts/states";
import type { Day } from "../wire";

const DAYS = 60;

export function Spending({ agentId }: { agentId: string }) {
  const activity = useAsk("activity", { agentId, days: DAYS });
  return (
    <Card title={`The last ${DAYS} days`}>
      <Shown of={activity} label="Reading the days">
        {({ days }) => <DayCharts days={everyDay(days, DAYS)} />}
      </Shown>
    </Card>
  );
}

function DayCharts({ days }: { days: Day[] }) {
  const bars = (value: (of: Day) => number) => days.map((each) => ({ label: day(each.day), value: value(each) }));
  const read = (each: Day) => each.usage?.inputTokens ?? 0;
  const cached = (each: Day) => each.usage?.cachedTokens ?? 0;
  const [readTokens, cachedTokens, spent] = [sum(days.map(read)), sum(days.map(cached)), sum(days.map((each) => each.usage?.dollars ?? 0))];
  return (
    <>
      <h3>Messages a day</h3>
      <Bars name="Messages a day" most={(value) => count(value, "message")} bars={bars((each) => each.messages)} />
      <h3>Spend a day</h3>
      {spent > 0 ? (
        <Bars name="Dollars a day" most={dollars} bars={bars((each) => each.usage?.dollars ?? 0)} height={70} />
      ) : (
        <p class="muted">No model was paid: summaries are made of quotes, or by a model of your own machine.</p>
      )}
      <h3>Read from the prompt cache</h3>
      {readTokens > 0 ? (
        <>
          <Bars name="Share of the prompt cache a day" most={(value) => percent(value, 1)} bars={bars((each) => cached(each) / Math.max(1, read(each)))} height={70} />
          <p class="small">{`${dollars(spent)} in ${DAYS} days; ${percent(cachedTokens, readTokens)} of the ${count(readTokens, "token")} that models read came from the prompt cache.`}</p>
        </>
      ) : (
        <p class="muted">No model read anything yet.</p>
      )}
    </>
  );
}

function everyDay(days: Day[], many: number): Day[] {
  const known = new Map(days.map((each) => [each.day, each]));
  return Array.from({ length: many }, (_, at) => {
    const name = new Date(Date.now() - (many - 1 - at) * 86_400_000).toISOString().slice(0, 10);
    return known.get(name) ?? { day: name, messages: 0, chars: 0 };
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
                    {total ? <Bars name={`Time of ${verb}`} most={(value) => count(value, "answer")} bars={bars} height={70} /> : <p class="muted">Not asked for since the provider started.</p>}
                    {total > 0 && <p class="small muted">{`${count(total, "answer")}, half of them ${half(bars, total)}`}</p>}
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

/** The buckets of Prometheus count up; a bar is what a bucket adds. */
function histogram(page: string, verb: string): { bars: Bar[]; total: number } {
  const bars: Bar[] = [];
  let before = 0;
  for (const line of page.split("\n")) {
    const found = /^offbook_request_seconds_bucket\{le="([^"]+)",verb="([^"]+)"\} (\S+)/.exec(line);
    if (!found || found[2] !== verb) continue;
    const label = found[1] === "+Inf" ? "longer" : `within ${Math.round(Number(found[1]) * 1e6) / 1000} ms`;
    const value = Number(found[3]) - before;
    before = Number(found[3]);
    bars.push({ label, value });
  }
  while (bars.length > 1 && bars.at(-1)!.value === 0) bars.pop();
  return { bars, total: before };
}

function half(bars: Bar[], total: number): string {
  let so = 0;
  return bars.find((bar) => (so += bar.value) >= total / 2)?.label ?? "–";
}
