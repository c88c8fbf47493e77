// Every setting that holds for the agent, and who gave it.
import { useState } from "preact/hooks";
import { useAsk } from "../parts/asking";
import { Badge, Card } from "../parts/pieces";
import { Shown } from "../parts/states";

const SHOWN = 25;

export function SettingsTable({ agentId }: { agentId: string }) {
  const config = useAsk("config", { agentId });
  const [wanted, setWanted] = useState("");
  const [onlyGiven, setOnlyGiven] = useState(false);
  const [isWhole, setWhole] = useState(false);
  return (
    <Card
      title="Settings"
      tools={
        <>
          <label>
            <input type="checkbox" checked={onlyGiven} onChange={(event) => setOnlyGiven(event.currentTarget.checked)} /> only what is not a default
          </label>
          <input type="search" aria-label="Find a setting" placeholder="find a setting" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        </>
      }
    >
      <Shown of={config} label="Reading settings">
        {(view) => {
          const origins = view.origins ?? {};
          const rows = flat(view.settings).filter(([name]) => name.toLowerCase().includes(wanted.toLowerCase()) && (!onlyGiven || origins[name]));
          return (
            <div class="table-scroll scroll" tabIndex={0} role="region" aria-label="Settings">
              <table class="settings">
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Value</th>
                    <th>From</th>
                  </tr>
                </thead>
                <tbody>
                  {(isWhole ? rows : rows.slice(0, SHOWN)).map(([name, value]) => (
                    <tr key={name}>
                      <td>{name}</td>
                      <td>{value}</td>
                      <td>{origins[name] ? <Badge kind="accent">{origins[name]}</Badge> : <span class="muted">default</span>}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
              {rows.length > SHOWN && !isWhole && (
                <button type="button" onClick={() => setWhole(true)}>{`Show all ${rows.length} settings`}</button>
              )}
              {!rows.length && <p class="muted">No setting fits.</p>}
            </div>
          );
        }}
      </Shown>
    </Card>
  );
}

function flat(settings: Record<string, unknown>, prefix = ""): [string, string][] {
  return Object.entries(settings).flatMap(([name, value]) =>
    value !== null && typeof value === "object" && !Array.isArray(value)
      ? flat(value as Record<string, unknown>, `${prefix}${name}.`)
      : [[`${prefix}${name}`, typeof value === "string" ? value : JSON.stringify(value)] as [string, string]],
  );
}
