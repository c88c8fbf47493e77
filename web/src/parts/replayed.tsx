// A context as it was: what it is made of, as a bar, and its messages.
import { Marked, MessageRow, textOf } from "./message";
import { type Share, Shares } from "./pieces";
import { count, tokensOf } from "../format";
import type { Message, Replay } from "../wire";

/** Tokens of each part, by our estimate: the sections of the turn, the summaries by level, word for word, come since. */
export function sharesOf(replay: Replay, recallTokens = 0): Share[] {
  const shares: Share[] = (replay.turnParts ?? []).map((part) => ({ name: `memory: ${part.kind}`, value: part.tokens, kind: "memory" }));
  const sums = new Map<string, number>();
  for (const part of replay.parts ?? []) {
    const name = part.kind === "verbatim" ? "word for word" : part.level ? `L${part.level} summaries` : "stand-ins";
    sums.set(name, (sums.get(name) ?? 0) + tokensOf(part.chars));
  }
  for (const [name, value] of sums) shares.push({ name, value, kind: name.startsWith("L") ? name.slice(0, 2).toLowerCase() : name === "stand-ins" ? "stand-in" : "verbatim" });
  const since = replay.messages.slice(replay.handedMessages ?? 0).reduce((sum, message) => sum + tokensOf(textOf(message).length), 0);
  shares.push({ name: replay.handedAt ? "come since" : "the log", value: since, kind: "new" });
  if (recallTokens) shares.push({ name: "came to mind", value: recallTokens, kind: "recall" });
  return shares;
}

export function ReplayBar({ replay, recallTokens }: { replay: Replay; recallTokens?: number }) {
  return <Shares shares={sharesOf(replay, recallTokens)} />;
}

export function Messages({ messages, leftOut = 0, needle = "", label }: { messages: Message[]; leftOut?: number; needle?: string; label: string }) {
  const shown = messages.slice(-120);
  const hidden = leftOut + messages.length - shown.length;
  return (
    <div class="context-text" tabIndex={0} role="region" aria-label={label}>
      {hidden > 0 && <p class="muted">{count(hidden, "earlier message")} before these.</p>}
      {shown.map((message, at) =>
        needle ? (
          <article key={at} class={`message role-${message.role}`}>
            <div class="text">
              <Marked text={textOf(message).slice(0, 20_000)} needle={needle} />
            </div>
          </article>
        ) : (
          <MessageRow key={at} message={message} />
        ),
      )}
    </div>
  );
}
