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

/** Asks whenever `request` or the number of returns of the provider changes; null asks nothing. The last answer stays
 * until the next is there. */
export function useAsk<V extends Verb>(verb: V, request: Requests[V] | null): Loaded<Answers[V]> {
  const key = request === null ? null : JSON.stringify(request);
  return useLoad<Answers[V]>(key, (signal) => ask(verb, request as Requests[V], signal));
}

export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, setState] = useState<{ value: T | null; error: Error | null; isLoading: boolean }>({
    value: null,
    error: null,
    isLoading: key !== null,
  });
  const [round, setRound] = useState(0);
  const current = useRef(load);
  current.current = load;
  useEffect(() => {
    if (key === null) return setState({ value: null, error: null, isLoading: false });
    const stopping = new AbortController();
    setState((was) => ({ ...was, isLoading: true }));
    current
      .current(stopping.signal)
      .then((value) => !stopping.signal.aborted && setState({ value, error: null, isLoading: false }))
      .catch((error: Error) => {
        if (!stopping.signal.aborted) setState((was) => ({ ...was, error, isLoading: false }));
      });
    return () => stopping.abort();
  }, [key, round]);
  useEffect(() => {
    const returned = () => setRound((was) => was + 1);
    addEventListener("offbook:returned", returned);
    return () => removeEventListener("offbook:returned", returned);
  }, []);
  const again = useCallback(() => setRound((was) => was + 1), []);
  return { ...state, again };
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
