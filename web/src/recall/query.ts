// The question that Recall is asked. It is kept in memory only: an address would leave it in the browser's history.
import { useEffect, useState } from "preact/hooks";
import { goTo, placeOf } from "../router";

let question = "";
const listeners = new Set<() => void>();

export function searchFor(text: string) {
  question = text;
  for (const listener of listeners) listener();
  if (placeOf(location.hash).page !== "recall") goTo("recall");
}

export function useQuestion(): string {
  const [text, setText] = useState(question);
  useEffect(() => {
    const changed = () => setText(question);
    changed();
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return text;
}
