// The day as of which memory is asked: a slider over the last year, and a date for any day.
import { useState } from "preact/hooks";
import { day as dayText } from "../format";

const DAY_MS = 86_400_000;
const MOST_DAYS = 365;

function daysAgo(many: number): string {
  return new Date(Date.now() - many * DAY_MS).toISOString().slice(0, 10);
}

/** The last moment of a day; none where no day is chosen. */
export function endOf(day: string): string | null {
  return day ? `${day}T23:59:59.999Z` : null;
}

/** `day` is empty for now. It is chosen when the slider is let go, not for each day on the way. */
export function DayChoice({ day, choose }: { day: string; choose: (day: string) => void }) {
  const [moving, setMoving] = useState<string | null>(null);
  const shown = moving ?? day;
  const back = shown ? Math.round((Date.parse(daysAgo(0)) - Date.parse(shown)) / DAY_MS) : 0;
  const at = (slider: HTMLInputElement) => (Number(slider.value) === MOST_DAYS ? "" : daysAgo(MOST_DAYS - Number(slider.value)));
  return (
    <>
      <label class="field grow">
        <span>{shown ? `As it was known on ${dayText(shown)}` : "As it is known now"}</span>
        <input
          type="range"
          min={0}
          max={MOST_DAYS}
          value={MOST_DAYS - Math.min(MOST_DAYS, back)}
          onInput={(event) => setMoving(at(event.currentTarget))}
          onChange={(event) => {
            setMoving(null);
            choose(at(event.currentTarget));
          }}
        />
      </label>
      <label class="field">
        <span>Day</span>
        <input type="date" max={daysAgo(0)} value={shown} onChange={(event) => choose(event.currentTarget.value)} />
      </label>
    </>
  );
}
