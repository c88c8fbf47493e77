// Charts of a few kinds, drawn as SVG by hand: nothing is worth a library.
import type { ComponentChildren } from "preact";
import { compact, day as dayText, number } from "../format";

export interface Bar {
  label: string;
  value: number;
  title?: string;
}

export function Bars({ bars, name, unit = "", height = 120 }: { bars: Bar[]; name: string; unit?: string; height?: number }) {
  const most = Math.max(1e-9, ...bars.map((bar) => bar.value));
  const width = 600;
  const step = width / Math.max(1, bars.length);
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={name}>
        {bars.map((bar, at) => {
          const tall = bar.value > 0 ? Math.max(1.5, (bar.value / most) * (height - 4)) : 0;
          return (
            <rect key={at} class="bar" x={at * step + step * 0.1} y={height - tall} width={Math.max(0.5, step * 0.8)} height={tall}>
              <title>{bar.title ?? `${bar.label}: ${number(bar.value)} ${unit}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        <span>{bars[0]?.label}</span>
        <span>
          most {compact(most)} {unit}
        </span>
        <span>{bars.at(-1)?.label}</span>
      </figcaption>
    </figure>
  );
}

export interface Point {
  x: number;
  y: number;
}

/** A line over time with marks on it, as the tokens of a context with its swaps. */
export function Line({
  points,
  marks = [],
  level,
  name,
  format,
  height = 120,
}: {
  points: Point[];
  marks?: { x: number; title: string }[];
  level?: { y: number; title: string };
  name: string;
  format: (x: number) => string;
  height?: number;
}) {
  if (points.length < 2) return null;
  const width = 600;
  const [from, to] = [points[0]!.x, points.at(-1)!.x];
  const most = Math.max(1, level && level.y < 20 * Math.max(...points.map((each) => each.y)) ? level.y : 0, ...points.map((each) => each.y)) * 1.08;
  const x = (value: number) => ((value - from) / Math.max(1, to - from)) * width;
  const y = (value: number) => height - (value / most) * height;
  const path = points.map((each, at) => `${at ? "L" : "M"}${x(each.x).toFixed(1)} ${y(each.y).toFixed(1)}`).join("");
  return (
    <figure class="chart">
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={name}>
        <path class="area" d={`${path}L${width} ${height}L0 ${height}Z`} />
        <path class="line" d={path} />
        {level && level.y <= most && (
          <line class="level" x1="0" x2={width} y1={y(level.y)} y2={y(level.y)}>
            <title>{level.title}</title>
          </line>
        )}
        {marks.map((mark, at) => (
          <line key={at} class="mark" x1={x(mark.x)} x2={x(mark.x)} y1="0" y2={height}>
            <title>{mark.title}</title>
          </line>
        ))}
      </svg>
      <figcaption>
        <span>{format(from)}</span>
        <span>up to {compact(Math.max(...points.map((each) => each.y)))} tokens</span>
        <span>{format(to)}</span>
      </figcaption>
    </figure>
  );
}

const DAY = 86_400_000;

/** A year at a glance: a square a day, a column a week. */
export function Year({ days, name }: { days: Map<string, number>; name: string }) {
  const today = new Date();
  const end = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate());
  const begin = end - (52 * 7 + ((new Date(end).getUTCDay() + 6) % 7)) * DAY;
  const most = Math.max(1, ...days.values());
  const squares: ComponentChildren[] = [];
  const months: ComponentChildren[] = [];
  let month = -1;
  for (let at = begin; at <= end; at += DAY) {
    const date = new Date(at);
    const week = Math.floor((at - begin) / (7 * DAY));
    const value = days.get(date.toISOString().slice(0, 10)) ?? 0;
    const level = value === 0 ? 0 : Math.min(4, 1 + Math.floor((3.99 * Math.log1p(value)) / Math.log1p(most)));
    squares.push(
      <rect key={at} class={`day day-${level}`} x={week * 13} y={18 + ((date.getUTCDay() + 6) % 7) * 13} width="10.5" height="10.5" rx="2">
        <title>{`${dayText(date)}: ${number(value)} messages`}</title>
      </rect>,
    );
    if (date.getUTCMonth() !== month && date.getUTCDate() <= 7) {
      month = date.getUTCMonth();
      months.push(
        <text key={at} x={week * 13} y="11">
          {date.toLocaleString("en", { month: "short", timeZone: "UTC" })}
        </text>,
      );
    }
  }
  return (
    <div class="year" tabIndex={0} role="region" aria-label={name}>
      <svg viewBox="0 0 690 110" role="img" aria-label={name}>
        {months}
        {squares}
      </svg>
    </div>
  );
}
