// What was forgotten before, and the proof that it is gone.
import { useState } from "preact/hooks";
import { ask } from "../api";
import { count, number, time } from "../format";
import { useAction, useAsk } from "../parts/asking";
import { Badge, Card } from "../parts/pieces";
import { Empty, Failure, Progress, Shown } from "../parts/states";
import type { ForgetCheck } from "../wire";

export function Receipts({ agentId }: { agentId: string }) {
  const kept = useAsk("forget/verify", { agentId });
  return (
    <Card title="Receipts">
      <Shown of={kept} label="Reading receipts">
        {({ receipts = [] }) =>
          receipts.length ? (
            <div class="table-scroll">
              <table>
                <thead>
                  <tr>
                    <th>When</th>
                    <th>By</th>
                    <th>Reason</th>
                    <th class="number">Messages</th>
                    <th>State</th>
                    <th>Proof</th>
                  </tr>
                </thead>
                <tbody>
                  {receipts.map((receipt) => (
                    <tr key={receipt.id}>
                      <td>{time(receipt.at)}</td>
                      <td>{receipt.by}</td>
                      <td>{receipt.reason}</td>
                      <td class="number">{number(receipt.messages)}</td>
                      <td>{receipt.isFinished ? <Badge kind="good">done</Badge> : <Badge kind="bad">goes on</Badge>}</td>
                      <td>
                        <Verify agentId={agentId} receiptId={receipt.id} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty title="Nothing was ever forgotten">Each forgetting leaves a receipt here, which can be verified at any time.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

export function Verify({ agentId, receiptId }: { agentId: string; receiptId: string }) {
  const [check, setCheck] = useState<ForgetCheck | null>(null);
  const go = useAction(async () => setCheck(await ask("forget/verify", { agentId, receiptId })));
  if (go.isRunning) return <Progress label="Searching everywhere" />;
  if (go.error) return <Failure error={go.error} />;
  if (!check) {
    return (
      <button type="button" onClick={() => void go.run()}>
        Verify
      </button>
    );
  }
  const searched = Object.values(check.searched).reduce((sum, many) => sum + many, 0);
  return (
    <span role="status">
      <Badge kind={check.isGenuine && !check.residue.length ? "good" : "bad"}>{!check.isGenuine ? "not our receipt" : check.residue.length ? `${count(check.residue.length, "trace")} found` : "proven gone"}</Badge>{" "}
      <span class="small muted">{count(searched, "place")} searched</span>
    </span>
  );
}
