// Looking after it: maintenance, backups, the index, models and money, settings with where each came from.
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api";
import type { PageProps } from "../app";
import { ago, compact, count, dollars, number, percent } from "../format";
import { useAction, useAsk } from "../parts/asking";
import { Badge, Card, Facts, Heading } from "../parts/pieces";
import { Failure, Progress, Shown } from "../parts/states";
import type { Status, TaskHealth } from "../wire";
import { Backups } from "./backups";
import { Latency, Spending } from "./charts";
import { SettingsTable } from "./settings";

const LOOK_MS = 1_000;

export function CarePage({ agentId }: PageProps) {
  const status = useAsk("status", { agentId });
  return (
    <>
      <Heading title="Care" lead="What keeps this memory well, and what it costs." />
      <Shown of={status} label="Counting">
        {(value) => (
          <>
            <Maintenance agentId={agentId} tasks={value.maintenance ?? []} again={status.again} />
            <div class="halves">
              <Index agentId={agentId} status={value} again={status.again} />
              <Models status={value} />
            </div>
            <div class="halves">
              <Spending agentId={agentId} />
              <Latency />
            </div>
            <Backups status={value} />
            <Capture status={value} />
          </>
        )}
      </Shown>
      <SettingsTable agentId={agentId} />
    </>
  );
}

function Maintenance({ agentId, tasks, again }: { agentId: string; tasks: TaskHealth[]; again: () => void }) {
  const [told, setTold] = useState("");
  const run = useAction(async (task?: string) => {
    const report = await ask("maintain", { agentId, tasks: task ? [task] : null });
    const failed = report.runs.filter((each) => each.error).length;
    setTold(`${count(report.runs.length, "task")} ran${failed ? `, ${failed} failed` : ""}.`);
    again();
  });
  return (
    <Card
      title="Maintenance"
      tools={
        <button type="button" disabled={run.isRunning} onClick={() => void run.run()}>
          Run all now
        </button>
      }
    >
      {run.isRunning && <Progress label="Running" />}
      {run.error && <Failure error={run.error} />}
      {told && <p role="status">{told}</p>}
      <div class="table-scroll">
        <table>
          <thead>
            <tr>
              <th>Task</th>
              <th>State</th>
              <th class="number">Runs</th>
              <th>Did, since the start</th>
              <th>Last worked</th>
              <th>Now</th>
            </tr>
          </thead>
          <tbody>
            {tasks.map((task) => (
              <tr key={task.task}>
                <td>{task.task}</td>
                <td>{task.error ? <Badge kind="bad">fails</Badge> : task.waits?.length ? <Badge kind="bad">waits for you</Badge> : <Badge kind="good">well</Badge>}</td>
                <td class="number">{number(task.runs)}</td>
                <td>
                  {Object.entries(task.did).map(([what, many]) => `${number(many)} ${what}`).join(", ") || "–"}
                  {task.error && <p class="small">{task.error}</p>}
                </td>
                <td>{task.lastSuccess ? ago(task.lastSuccess) : "not yet"}</td>
                <td>
                  <button type="button" disabled={run.isRunning} onClick={() => void run.run(task.task)} aria-label={`Run ${task.task} now`}>
                    Run
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Index({ agentId, status, again }: { agentId: string; status: Status; again: () => void }) {
  const [isBuilding, setBuilding] = useState(false);
  const rebuild = useAction(async (embeddings: boolean) => {
    await ask("reindex", { agentId, embeddings });
    setBuilding(true);
    again();
  });
  const { index } = status;
  // It goes on in the background: looked at until nothing waits.
  useEffect(() => {
    if (!isBuilding) return;
    const next = setTimeout(() => (index.waiting ? again() : setBuilding(false)), LOOK_MS);
    return () => clearTimeout(next);
  }, [status, isBuilding]);
  return (
    <Card title="Index">
      <Facts
        facts={[
          ["Found by text", number(index.entries)],
          ["By meaning, too", `${number(index.embedded)} (${percent(index.embedded, index.entries)})`],
          ["Waiting", number(index.waiting)],
          ["Model", index.model ?? "none"],
        ]}
      />
      {index.trouble && <p class="failure">{index.trouble}</p>}
      <div class="tools">
        <button type="button" disabled={rebuild.isRunning} onClick={() => void rebuild.run(false)}>
          Rebuild the index
        </button>
        <button type="button" disabled={rebuild.isRunning} onClick={() => void rebuild.run(true)}>
          … and embed everything again
        </button>
      </div>
      {(rebuild.isRunning || isBuilding) && <Progress label={`It is being built again; ${count(index.waiting, "entry waits", "entries wait")}`} />}
      {rebuild.error && <Failure error={rebuild.error} />}
    </Card>
  );
}

function Models({ status }: { status: Status }) {
  const { summaries, costs } = status;
  const today = summaries.spending;
  return (
    <Card title="Models and money">
      <Facts
        facts={[
          ["Summaries by", summaries.summarizers.join(", then ")],
          ["In all", `${compact(costs.tokens)} tokens, ${dollars(costs.dollars)}`],
          ["Today", today ? `${compact(today.tokens)} of ${compact(today.maxTokens)} tokens, ${dollars(today.dollars)} of ${dollars(today.maxDollars)}` : "no model that costs"],
          ["Still to summarise", count(summaries.waiting, "session")],
        ]}
      />
      {Object.entries(summaries.troubles ?? {}).map(([name, why]) => (
        <p key={name} class="failure">
          {name}: {why}
        </p>
      ))}
    </Card>
  );
}

function Capture({ status }: { status: Status }) {
  const { capture } = status;
  if (!capture.clients.length) return null;
  return (
    <Card title="What clients sent, and what arrived" tools={<Badge kind={capture.missing ? "bad" : "good"}>{capture.missing ? `${number(capture.missing)} missing` : "nothing is missing"}</Badge>}>
      <div class="table-scroll">
        <table>
          <thead>
            <tr>
              <th>Client</th>
              <th class="number">Sent</th>
              <th class="number">Received</th>
              <th class="number">Missing</th>
              <th>Last seen</th>
            </tr>
          </thead>
          <tbody>
            {capture.clients.map((client) => (
              <tr key={client.client}>
                <td>{client.client}</td>
                <td class="number">{number(client.sent)}</td>
                <td class="number">{number(client.received)}</td>
                <td class="number">{number(client.missing)}</td>
                <td>{ago(client.lastSeen)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
