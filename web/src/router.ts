// Where we are: `#/page/of?name=value`. A place can be linked to and gone back from.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  page: string;
  /** What the page is about, as the session of a conversation; empty where none is said. */
  of: string;
  query: Record<string, string>;
}

export function placeOf(hash: string): Place {
  const place = hash.replace(/^#\/?/, "");
  const mark = place.indexOf("?");
  const [path, search] = mark < 0 ? [place, ""] : [place.slice(0, mark), place.slice(mark + 1)];
  const [page = "", ...of] = path.split("/");
  return {
    page: page || "now",
    of: decoded(of.join("/")),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** As it stands where it was typed by hand and encodes nothing, as in `100%`. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function linkTo(page: string, of = "", query: Record<string, string | number | undefined> = {}): string {
  const { agent } = placeOf(location.hash).query;
  const given = Object.entries({ agent, ...query }).filter(([, value]) => value !== undefined && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${page}${of ? `/${encodeURIComponent(of)}` : ""}${search ? `?${search}` : ""}`;
}

export function goTo(page: string, of = "", query: Record<string, string | number | undefined> = {}) {
  location.hash = linkTo(page, of, query);
}

/** Instead of the place that is shown: it goes from the browser's history. */
export function replacePlace(page: string) {
  history.replaceState(null, "", linkTo(page));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const changed = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}
