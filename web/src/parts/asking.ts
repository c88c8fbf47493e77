// Reading a verb into a page: what it answered, what went wrong, and asking again.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, Problem } from "../api";
import type { Answers, Requests, Verb } from "../wire";

export interface Loaded<T> {
  value: T | null;
  error: Error | null;
  isLoading: boolean;
  again: () => void;
}

const underWay = new Map<string, Promise<unknown>>();

/** Two parts of a page that ask for the same at once get one answer. */
function shared<T>(key: string, load: () => Promise<T>): Promise<T> {
  const known = underWay.get(key) as Promise<T> | undefined;
  if (known) return known;
  const asked = load().finally(() => underWay.delete(key));
  underWay.set(key, asked);
  return asked;
}

/** Asks whenever `request` or the number of returns of the provider changes; null asks nothing. The last answer stays
 * until the next is there. */
export function useAsk<V extends Verb>(verb: V, request: Requests[V] | null): Loaded<Answers[V]> {
  const key = request === null ? null : JSON.stringify(request);
  return useLoad<Answers[V]>(key, () => shared(`${verb} ${key}`, () => ask(verb, request as Requests[V])));
}

export function useLoad<T>(key: string | null, load: () => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: Error | null; isLoading: boolean; key: string | null }>({
    value: null,
    error: null,
    isLoading: key !== null,
    key,
  });
  const [round, setRound] = useState(0);
  const current = useRef(load);
  current.current = load;
  useEffect(() => {
    if (key === null) return setState((was) => (was.key === null ? was : { value: null, error: null, isLoading: false, key }));
    let isOver = false;
    setState((was) => (was.isLoading && was.key === key ? was : { ...was, isLoading: true, key }));
    current
      .current()
      .then((value) => !isOver && setState({ value, error: null, isLoading: false, key }))
      .catch((error: Error) => {
        if (!isOver) setState((was) => ({ ...was, error, isLoading: false }));
      });
    return () => {
      isOver = true;
    };
  }, [key, round]);
  useEffect(() => {
    const returned = () => setRound((was) => was + 1);
    addEventListener("offbook:returned", returned);
    return () => removeEventListener("offbook:returned", returned);
  }, []);
  const again = useCallback(() => setRound((was) => was + 1), []);
  return { value: state.value, error: state.error, isLoading: state.isLoading || state.key !== key, again };
}

/** Something a person asked to be done: under way, done or failed. */
export function useAction<A extends unknown[], T>(act: (...given: A) => Promise<T>) {
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<Error | null>(null);
  const run = async (...given: A): Promise<T | undefined> => {
    setRunning(true);
    setError(null);
    try {
      return await act(...given);
    } catch (problem) {
      setError(problem instanceof Problem ? problem : (problem as Error));
      return undefined;
    } finally {
      setRunning(false);
    }
  };
  return { run, isRunning, error };
}
