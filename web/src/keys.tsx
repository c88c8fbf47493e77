// The keyboard: `/` searches, `j` and `k` go through a list, `?` tells of them.
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { goTo } from "./router";

const KEYS: [string, string][] = [
  ["/", "Search memory"],
  ["j", "Next of a list"],
  ["k", "The one before"],
  ["Enter", "Open it"],
  ["g n", "Now"],
  ["g c", "Conversation"],
  ["g t", "Turns"],
  ["g s", "Swaps"],
  ["g r", "Recall"],
  ["g m", "Memory"],
  ["g a", "Audit"],
  ["?", "These keys"],
  ["Esc", "Close"],
];
const GO: Record<string, string> = { n: "now", c: "conversation", t: "turns", s: "swaps", r: "recall", m: "memory", a: "audit", f: "forget", e: "care" };

export function useKeys(search: RefObject<HTMLInputElement | null>, toggleHelp: () => void) {
  const pressed = useRef("");
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) {
        if (event.key === "Escape") at.blur();
        return;
      }
      const before = pressed.current;
      pressed.current = event.key;
      if (before === "g" && GO[event.key]) return goTo(GO[event.key]!);
      if (event.key === "/") {
        event.preventDefault();
        search.current?.focus();
        search.current?.select();
      } else if (event.key === "?") toggleHelp();
      else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}

function step(by: number) {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? rows[by > 0 ? 0 : rows.length - 1] : rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={close} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
