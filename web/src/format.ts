// Numbers, times and sizes as a person reads them.
const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const CHARS_PER_TOKEN = 4;

export function number(value: number): string {
  return whole.format(Math.round(value));
}

export function compact(value: number): string {
  return value < 10_000 ? number(value) : short.format(value);
}

export function percent(part: number, of: number): string {
  return of > 0 ? `${Math.round((100 * part) / of)} %` : "–";
}

export function dollars(value: number): string {
  return value === 0 ? "$0" : value < 0.01 ? `$${value.toFixed(4)}` : `$${value.toFixed(2)}`;
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${number(value)} ${value === 1 ? one : many}`;
}

const minute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const second = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dayOnly = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

export function time(value: string | Date): string {
  return minute.format(new Date(value));
}

export function clock(value: string | Date): string {
  return second.format(new Date(value));
}

export function day(value: string | Date): string {
  return dayOnly.format(new Date(value));
}

const STEPS: [number, string][] = [
  [86_400 * 365, "year"],
  [86_400 * 30, "month"],
  [86_400 * 7, "week"],
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];

export function ago(value: string | Date): string {
  const seconds = (Date.now() - new Date(value).getTime()) / 1000;
  for (const [size, name] of STEPS) {
    if (seconds >= size) return `${count(Math.floor(seconds / size), name)} ago`;
  }
  return seconds < 5 ? "now" : `${Math.floor(seconds)} s ago`;
}

export function tokensOf(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
