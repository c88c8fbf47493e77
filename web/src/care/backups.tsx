// The backups that hold this agent's memory, and how to make and restore one.
import { ago, count, number, time } from "../format";
import { Card } from "../parts/pieces";
import type { Status } from "../wire";

const SHOWN = 10;

export function Backups({ status }: { status: Status }) {
  const { backups = [], unreadableBackups = 0 } = status;
  return (
    <Card title="Backups">
      {unreadableBackups > 0 && (
        <p class="failure">
          {count(unreadableBackups, "backup")} cannot be read: <code>offbook backup --list</code> says why.
        </p>
      )}
      {backups.length > 0 ? (
        <div class="table-scroll">
          <table>
            <thead>
              <tr>
                <th>Made</th>
                <th class="number">Messages of this agent</th>
                <th>File</th>
              </tr>
            </thead>
            <tbody>
              {backups.slice(0, SHOWN).map((each) => (
                <tr key={each.file + each.madeAt}>
                  <td title={time(each.madeAt)}>{ago(each.madeAt)}</td>
                  <td class="number">{each.messages == null ? "–" : number(each.messages)}</td>
                  <td>
                    {each.file}
                    {!each.inDataFolder && <span class="muted"> (written elsewhere)</span>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {backups.length > SHOWN && <p class="small muted">And {count(backups.length - SHOWN, "older one", "older ones")}.</p>}
        </div>
      ) : (
        <p class="muted">None yet.</p>
      )}
      <p class="small muted">
        {status.store === "postgres" ? (
          <>The memory is in a database: back it up with the database's own tools.</>
        ) : (
          <>
            Make one while it runs: <code>offbook backup --rotate</code>. Regular ones: the setting <code>backup.everyHours</code>. Put one back: <code>offbook restore FILE</code>.
          </>
        )}
      </p>
    </Card>
  );
}
