/** Where a provider listens, and the token it wants to see. */
import { readFileSync } from "node:fs";
import type { RequestOptions } from "node:http";
import { join } from "node:path";
import type { Settings } from "./settings.js";

export interface Place {
  readonly told: string;
  readonly options: RequestOptions;
  readonly isSecure: boolean;
  readonly prefix: string;
  /** Whether the token of the data folder is shown there: never to another machine; to a socket it need not be. */
  readonly takesOwnToken: boolean;
}

/** Undefined where it cannot be read. */
export function placeOf(endpoint: string): Place | undefined {
  const path = endpoint.startsWith("/") ? endpoint : /^unix:(?:\/\/)?(\/[^/].*)$/.exec(endpoint)?.[1];
  if (path !== undefined) {
    const options = { socketPath: unescaped(path), host: "localhost" };
    return { told: `unix:${options.socketPath}`, options, isSecure: false, prefix: "", takesOwnToken: false };
  }
  if (!URL.canParse(endpoint)) return undefined;
  const url = new URL(endpoint);
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isSecure = url.protocol === "https:";
  return {
    told: url.origin,
    options: { host, port: url.port ? Number(url.port) : isSecure ? 443 : 80 },
    isSecure,
    prefix: url.pathname.replace(/\/+$/, ""),
    takesOwnToken: host === "localhost" || host === "::1" || /^127\./.test(host),
  };
}

function unescaped(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

export interface TokenReader {
  now(): string | undefined;
  /** Reads it anew; whether it is another one. */
  again(): boolean;
}

/** The file may be written after us, and again when the token is changed. */
export function tokenReader(settings: Settings, place: Place | undefined): TokenReader {
  const isOwn = settings.tokenFile === join(settings.home, "token");
  if (isOwn && !place?.takesOwnToken) return { now: () => undefined, again: () => false };
  let known = tokenIn(settings.tokenFile);
  return {
    now: () => (known ??= tokenIn(settings.tokenFile)),
    again: () => {
      const before = known;
      known = tokenIn(settings.tokenFile);
      return known !== undefined && known !== before;
    },
  };
}

function tokenIn(file: string): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    return /^[\x21-\x7e]+$/.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}
