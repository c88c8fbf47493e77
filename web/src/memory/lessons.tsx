// Lessons: accepted, edited, rejected by whoever looks.
import { useEffect, useState } from "preact/hooks";
import { ask } from "../api";
import { ago, count, number, percent } from "../format";
import { useAction, useAsk } from "../parts/asking";
import { Badge, Card } from "../parts/pieces";
import { Empty, Failure, Progress, Shown } from "../parts/states";
import type { GetLessons, JudgeLesson, Lesson } from "../wire";
import { Where } from "./page";

const PAGE = 20;

type Status = Lesson["status"];
const STATUSES: Status[] = ["learnt", "accepted", "edited", "rejected"];

export function Lessons({ agentId }: { agentId: string }) {
  const [status, setStatus] = useState<"" | Status>("");
  const [kind, setKind] = useState("");
  const asked: GetLessons = { agentId, limit: PAGE, status: status || null, kind: (kind || null) as Lesson["kind"] | null };
  const first = useAsk("lessons", asked);
  const [more, setMore] = useState<Lesson[]>([]);
  const [next, setNext] = useState<string | null>(null);
  useEffect(() => {
    setMore([]);
    setNext(first.value?.next ?? null);
  }, [first.value]);
  const go = useAction(async () => {
    const page = await ask("lessons", { ...asked, before: next });
    setMore([...more, ...page.lessons]);
    setNext(page.next ?? null);
  });
  return (
    <Card
      title="Lessons"
      tools={
        <>
          <select aria-label="Status" value={status} onChange={(event) => setStatus(event.currentTarget.value as Status)}>
            <option value="">any status</option>
            {STATUSES.map((each) => (
              <option key={each} value={each}>{`${each} (${number(first.value?.counts[each] ?? 0)})`}</option>
            ))}
          </select>
          <select aria-label="Kind" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
            <option value="">any kind</option>
            {["decision", "correction", "preference", "procedure", "fact"].map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </>
      }
    >
      <Shown of={first} label="Reading lessons">
        {(page) => (
          <>
            {[...page.lessons, ...more].map((lesson) => (
              <LessonCard key={lesson.id} agentId={agentId} given={lesson} />
            ))}
            {!page.lessons.length && <Empty title="No lessons here">What is said as a decision, a preference or a fact that lasts becomes a lesson by itself.</Empty>}
            {next && (go.isRunning ? <Progress label="Reading" /> : <button type="button" onClick={() => void go.run()}>More</button>)}
            {go.error && <Failure error={go.error} />}
          </>
        )}
      </Shown>
    </Card>
  );
}

function LessonCard({ agentId, given }: { agentId: string; given: Lesson }) {
  const [lesson, setLesson] = useState(given);
  useEffect(() => setLesson(given), [given]);
  const [text, setText] = useState<string | null>(null);
  const judge = useAction(async (verdict: JudgeLesson["verdict"], said?: string) => {
    setLesson(await ask("lessons/judge", { agentId, lessonId: lesson.id, verdict, ...(said === undefined ? {} : { text: said }) } as never));
    setText(null);
  });
  return (
    <article class="lesson" data-row tabIndex={-1} aria-label={lesson.id}>
      <div class="entry-head">
        <Badge kind={lesson.status}>{lesson.status}</Badge>
        <Badge>{lesson.kind}</Badge>
        {lesson.about && <span>about {lesson.about}</span>}
        <span class="muted">{`${lesson.id} · ${percent(lesson.confidence, 1)} sure · said ${count(lesson.times, "time")} · ${ago(lesson.lastSeen)} · ${lesson.learntBy}`}</span>
      </div>
      {text === null ? (
        <p class="lesson-text">{lesson.text}</p>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void judge.run("edit", text);
          }}
        >
          <textarea aria-label="What it should say" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <div class="tools">
            <button type="submit" class="primary" disabled={judge.isRunning || !text.trim()}>
              Save
            </button>
            <button type="button" onClick={() => setText(null)}>
              Cancel
            </button>
          </div>
        </form>
      )}
      {lesson.learntText && <p class="small muted">It said before: {lesson.learntText}</p>}
      <div class="tools">
        <button type="button" disabled={judge.isRunning || lesson.status === "accepted"} onClick={() => void judge.run("accept")}>
          Accept
        </button>
        <button type="button" disabled={judge.isRunning} onClick={() => setText(lesson.text)}>
          Edit
        </button>
        <button type="button" disabled={judge.isRunning || lesson.status === "rejected"} onClick={() => void judge.run("reject")}>
          Reject
        </button>
        <span class="small muted">said in</span>
        {lesson.sources.slice(0, 6).map((source) => (
          <Where key={`${source.sessionId}-${source.seq}`} sessionId={source.sessionId} seq={source.seq} />
        ))}
      </div>
      {judge.error && <Failure error={judge.error} />}
    </article>
  );
}
