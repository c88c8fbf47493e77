// Charts of a few kinds, drawn as SVG by hand: nothing is worth a library.
import { useMemo, useState } from "preact/hooks";
import { compact, count, day as dayText } from "../format";

export interface Bar {
  label: string;
  value: number;
}

export function Bars({ bars, name, most: told, height = 120 }: { bars: Bar[]; name: string; most: (value: number) => string; height?: number }) {
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
              <title>{`${bar.label}: ${told(bar.value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        <span>{bars[0]?.label}</span>
        <span>most {told(Math.max(0, ...bars.map((bar) => bar.value)))}</span>
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
const SQUARE = 13;
const YEAR_TOP = 18;

/** A year at a glance: a square a day, a column a week. One path for all days of a shade: hundreds of squares are slow. */
export function Year({ days, name }: { days: Map<string, number>; name: string }) {
  const [seen, see] = useState("");
  const today = new Date();
  const end = Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate());
  const begin = end - (52 * 7 + weekday(end)) * DAY;
  const { paths, months } = useMemo(() => yearOf(days, begin, end), [days, end]);
  const look = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const [x, y] = [((event.clientX - box.left) / box.width) * 690, ((event.clientY - box.top) / box.height) * 110 - YEAR_TOP];
    const at = begin + (Math.floor(x / SQUARE) * 7 + Math.floor(y / SQUARE)) * DAY;
    if (y >= 0 && at <= end) see(`${dayText(new Date(at))}: ${count(days.get(isoDay(at)) ?? 0, "message")}`);
  };
  return (
    <>
      <div class="year" tabIndex={0} role="region" aria-label={name}>
        <svg viewBox="0 0 690 110" role="img" aria-label={name} onPointerMove={look} onPointerLeave={() => see("")}>
          {months.map(([week, month]) => (
            <text key={week} x={week * SQUARE} y="11">
              {month}
            </text>
          ))}
          {paths.map((path, level) => (
            <path key={level} class={`day day-${level}`} d={path} />
          ))}
        </svg>
      </div>
      <p class="muted">{seen || name}</p>
    </>
  );
}

function yearOf(days: Map<string, number>, begin: number, end: number): { paths: string[]; months: [number, string][] } {
  const most = Math.max(1, ...days.values());
  const paths = ["", "", "", "", ""];
  const months: [number, string][] = [];
  for (let at = begin, month = -1; at <= end; at += DAY) {
    const date = new Date(at);
    const week = Math.floor((at - begin) / (7 * DAY));
    const value = days.get(isoDay(at)) ?? 0;
    const level = value === 0 ? 0 : Math.min(4, 1 + Math.floor((3.99 * Math.log1p(value)) / Math.log1p(most)));
    paths[level] += `M${week * SQUARE} ${YEAR_TOP + weekday(at) * SQUARE}h10.5v10.5h-10.5z`;
    if (date.getUTCMonth() !== month && date.getUTCDate() <= 7) {
      month = date.getUTCMonth();
      months.push([week, MONTHS[month]!]);
    }
  }
  return { paths, months };
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** 0 is Monday. */
function weekday(at: number): number {
  return (new Date(at).getUTCDay() + 6) % 7;
}

function isoDay(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
