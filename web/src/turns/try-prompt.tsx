// What a prompt would bring to mind now. Nothing is recorded of it but that somebody looked.
import { useState } from "preact/hooks";
import { ask } from "../api";
import { count, number } from "../format";
import { useAction } from "../parts/asking";
import { EntryCard } from "../parts/entry";
import { Card, Shares } from "../parts/pieces";
import { Failure, Progress } from "../parts/states";
import type { PreparedTurn } from "../wire";

export function TryPrompt({ agentId, sessionId }: { agentId: string; sessionId: string }) {
  const [prompt, setPrompt] = useState("");
  const [turn, setTurn] = useState<PreparedTurn | null>(null);
  const go = useAction(async () => setTurn(await ask("prepareTurn", { sessionId, agentId, prompt, explain: true, preview: true })));
  return (
    <>
      <Card title="A prompt, as the user would say it">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void go.run();
          }}
        >
          <textarea aria-label="Prompt" value={prompt} onInput={(event) => setPrompt(event.currentTarget.value)} placeholder="What did we decide about the garden?" />
          <button type="submit" class="primary" disabled={go.isRunning || !prompt.trim()}>
            See what comes to mind
          </button>
        </form>
        {go.isRunning && <Progress label="Preparing the turn" />}
        {go.error && <Failure error={go.error} />}
      </Card>
      {turn && (
        <>
          <Card title={`${number(turn.tokens.memory + turn.tokens.recall)} tokens, intent ${turn.intent}`}>
            <Shares shares={(turn.parts ?? []).map((part) => ({ name: `${part.section}: ${part.kind}`, value: part.tokens, kind: part.section }))} />
            {turn.degraded.map((why) => (
              <p key={why} class="failure">
                {why}
              </p>
            ))}
          </Card>
          <Card title={`Comes to mind: ${count(turn.entries.length, "entry", "entries")}`}>
            {turn.entries.map((entry) => (
              <EntryCard key={entry.id} entry={entry} agentId={agentId} />
            ))}
            {!turn.entries.length && <p class="muted">Nothing does.</p>}
          </Card>
          {(turn.parts ?? []).map((part) => (
            <Card key={`${part.section}-${part.kind}`} title={`${part.section}: ${part.kind}`} tools={<span class="muted">{part.why}</span>}>
              <div class="text scroll" tabIndex={0} role="region" aria-label={part.kind}>
                {part.text}
              </div>
            </Card>
          ))}
        </>
      )}
    </>
  );
}
