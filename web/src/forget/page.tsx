// Forgetting for good: find, see all that would go, confirm by typing, receipt, proof.
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api";
import type { PageProps } from "../app";
import { count, number } from "../format";
import { useAction } from "../parts/asking";
import { textOf } from "../parts/message";
import { Badge, Card, Facts, Heading } from "../parts/pieces";
import { Failure, Progress } from "../parts/states";
import type { Forget, ForgetReceipt } from "../wire";
import { Receipts, Verify } from "./receipts";

const MOST_CHARS = 200;

type How = "matching" | "entryIds" | "sessionId" | "secrets" | "everything";

export function ForgetPage({ agentId, of, query }: PageProps) {
  const [how, setHow] = useState<How>(query.entry ? "entryIds" : query.session ? "sessionId" : "matching");
  const [what, setWhat] = useState(query.entry ?? query.session ?? "");
  const [reason, setReason] = useState("");
  const [trial, setTrial] = useState<ForgetReceipt | null>(null);
  const [receipt, setReceipt] = useState<ForgetReceipt | null>(null);
  const request = (dryRun: boolean): Forget => {
    const named = { matching: { matching: what }, entryIds: { entryIds: what.split(/[\s,]+/).filter(Boolean) }, sessionId: { sessionId: what }, secrets: { secrets: true }, everything: { everything: true } }[how];
    return { agentId, reason, dryRun, ...named } as Forget;
  };
  const look = useAction(async () => {
    setReceipt(null);
    setTrial((await ask("forget", request(true))).receipt);
  });
  const erase = useAction(async () => {
    setReceipt((await ask("forget", request(false))).receipt);
    setTrial(null);
  });
  const change = (act: () => void) => {
    act();
    setTrial(null);
  };
  // A message is named by its place: its words would stay in the browser's history.
  const seq = Number(query.seq);
  const read = useAction(async () => {
    const [line] = (await ask("log", { agentId, sessionId: of, afterSeq: seq - 1, limit: 1 })).messages;
    if (line?.seq !== seq) return;
    change(() => {
      setHow("matching");
      setWhat(textOf(line.message).slice(0, MOST_CHARS));
    });
  });
  useEffect(() => {
    if (of && seq > 0) void read.run();
  }, [of, seq]);
  return (
    <>
      <Heading title="Forget" lead="Erases messages for good, with everything derived from them, and proves it." />
      <Card title="1. What should go">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void look.run();
          }}
        >
          <div class="form">
            <label class="field">
              <span>Named by</span>
              <select value={how} onChange={(event) => change(() => setHow(event.currentTarget.value as How))}>
                <option value="matching">a text they contain</option>
                <option value="sessionId">their session</option>
                <option value="entryIds">their entry ids</option>
                <option value="secrets">the secrets they hold</option>
                <option value="everything">everything this agent was told</option>
              </select>
            </label>
            {how !== "secrets" && how !== "everything" && (
              <label class="field grow">
                <span>{{ matching: "Text, regardless of case and spacing", sessionId: "Session", entryIds: "Entry ids" }[how]}</span>
                <input required value={what} onInput={(event) => change(() => setWhat(event.currentTarget.value))} />
              </label>
            )}
            <label class="field grow">
              <span>Reason (kept with the receipt)</span>
              <input value={reason} maxLength={500} onInput={(event) => setReason(event.currentTarget.value)} />
            </label>
            <button type="submit" disabled={look.isRunning}>
              Show what would go
            </button>
          </div>
        </form>
        {look.isRunning && <Progress label="Looking through everything that was ever said" />}
        {(look.error || read.error) && <Failure error={(look.error ?? read.error)!} />}
      </Card>
      {trial && <Confirm trial={trial} isRunning={erase.isRunning} error={erase.error} erase={() => void erase.run()} />}
      {receipt && (
        <Card title="Forgotten" tools={<Badge kind={receipt.residue.length ? "bad" : "good"}>{receipt.residue.length ? `${receipt.residue.length} left over` : "nothing is left"}</Badge>}>
          <Reached receipt={receipt} />
          <p class="small muted">Receipt {receipt.id}. It holds none of the words.</p>
          <Verify agentId={agentId} receiptId={receipt.id} />
        </Card>
      )}
      <Receipts agentId={agentId} key={receipt?.id ?? ""} />
    </>
  );
}

function Confirm({ trial, isRunning, error, erase }: { trial: ForgetReceipt; isRunning: boolean; error: Error | null; erase: () => void }) {
  const [typed, setTyped] = useState("");
  const messages = trial.reached.messages ?? 0;
  if (!messages) {
    return (
      <Card title="2. What would go">
        <p>Nothing: no message of this agent fits.</p>
      </Card>
    );
  }
  const phrase = `forget ${messages}`;
  return (
    <Card title="2. What would go">
      <Reached receipt={trial} />
      <ul class="small">
        {trial.spans.slice(0, 20).map((span, at) => (
          <li key={at}>{`${span.sessionId}: messages ${span.firstSeq} to ${span.lastSeq}`}</li>
        ))}
      </ul>
      {trial.outside.length > 0 && (
        <>
          <h3>Where it may still lie, out of reach</h3>
          <ul class="small">
            {trial.outside.map((each) => (
              <li key={each}>{each}</li>
            ))}
          </ul>
        </>
      )}
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === phrase) erase();
        }}
      >
        <label class="field">
          <span>
            This cannot be undone. Type <strong>{phrase}</strong>
          </span>
          <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" />
        </label>
        <button type="submit" class="danger" disabled={typed !== phrase || isRunning}>
          {`Forget ${count(messages, "message")} for good`}
        </button>
      </form>
      {isRunning && <Progress label="Erasing, and looking for what is left" />}
      {error && <Failure error={error} />}
    </Card>
  );
}

function Reached({ receipt }: { receipt: ForgetReceipt }) {
  const words = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  const reached = Object.entries(receipt.reached).filter(([, many]) => Number(many) > 0);
  return <Facts facts={reached.map(([name, many]) => [words(name), number(Number(many))])} />;
}
