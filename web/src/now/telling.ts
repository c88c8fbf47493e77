// An event of the audit chain as a sentence, and what of a status needs a person.
import { count, number } from "../format";
import type { AuditEvent, Status } from "../wire";

export function told(event: AuditEvent): string {
  const details = event.details as Record<string, unknown>;
  const many = (name: string) => Number(details[name] ?? 0);
  switch (event.verb) {
    case "onMessage":
    case "hooks/pre-compaction":
    case "import":
      return many("accepted") ? `${count(many("accepted"), "message")} recorded` : "nothing new to record";
    case "swap":
      return details.swapped ? `swapped to generation ${number(many("generation"))}` : "no swap was due";
    case "compress":
      return details.id ? `summary ${String(details.id)} written` : "summaries asked for";
    case "prepareTurn":
      return `turn prepared, ${count((details.entries as unknown[] | undefined)?.length ?? 0, "memory", "memories")} came to mind`;
    case "recall":
      return `recall, ${count((details.entries as unknown[] | undefined)?.length ?? 0, "entry", "entries")} found`;
    case "supersede":
      return "a correction replaced what was said before";
    case "forget":
      return details.dryRun ? "forgetting tried, nothing erased" : `${count(many("messages"), "message")} forgotten`;
    case "pin":
    case "unpin":
      return `${count(many("changed"), "entry", "entries")} ${event.verb}ned`;
    case "hooks/session-start":
      return "session starts";
    case "hooks/session-end":
      return "session ends";
    case "lessons/judge":
      return `lesson ${String(details.lesson ?? "")}: ${String(details.verdict ?? "")}`;
    default:
      return event.verb;
  }
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

export interface Trouble {
  what: string;
  mend: string;
}

export function troubles(status: Status): Trouble[] {
  const found: Trouble[] = [];
  if (status.index.trouble) found.push({ what: "Recall goes by text only.", mend: `${capital(status.index.trouble)}.${status.index.trouble.includes("switched off") ? "" : " Run `offbook model install`."}` });
  for (const [name, why] of Object.entries(status.summaries.troubles ?? {})) {
    found.push({ what: `The summarizer ${name} is not used now.`, mend: `${capital(why)}. Summaries are made of quotes meanwhile.` });
  }
  if (status.capture.missing > 0) {
    found.push({ what: `${count(status.capture.missing, "message")} of a client did not arrive.`, mend: "Run `offbook flush`, then `offbook status`." });
  }
  for (const task of status.maintenance ?? []) {
    if (task.error) found.push({ what: `The task ${task.task} fails (${count(task.failures, "time")}).`, mend: task.error });
    for (const page of task.waits ?? []) found.push({ what: `${task.task} waits for you:`, mend: page });
  }
  return found;
}
