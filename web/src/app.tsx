// The frame around every page: where to go, whose memory it is, whether what is seen is live.
import { useEffect, useRef, useState } from "preact/hooks";
import { currentSession, onSessionChange, signOut } from "./api";
import { AuditPage } from "./audit/page";
import { CarePage } from "./care/page";
import { ConversationPage } from "./conversation/page";
import { ForgetPage } from "./forget/page";
import { count } from "./format";
import { Help, useKeys } from "./keys";
import { useStream } from "./live";
import { MemoryPage } from "./memory/page";
import { useAsk } from "./parts/asking";
import { NowPage } from "./now/page";
import { RecallPage } from "./recall/page";
import { searchFor } from "./recall/query";
import { goTo, linkTo, usePlace } from "./router";
import { SwapsPage } from "./swaps/page";
import { TurnsPage } from "./turns/page";

export interface PageProps {
  agentId: string;
  /** What the page is about: the session, where it is about one. */
  of: string;
  query: Record<string, string>;
}

const PAGES: [string, string, (given: PageProps) => preact.JSX.Element][] = [
  ["now", "Now", NowPage],
  ["conversation", "Conversation", ConversationPage],
  ["turns", "Turns", TurnsPage],
  ["swaps", "Swaps", SwapsPage],
  ["recall", "Recall", RecallPage],
  ["memory", "Memory", MemoryPage],
  ["forget", "Forget", ForgetPage],
  ["audit", "Audit", AuditPage],
  ["care", "Care", CarePage],
];

export function App() {
  const [session, setSession] = useState(currentSession());
  useEffect(() => onSessionChange(() => setSession(currentSession())), []);
  return session ? <Frame agents={session.agents} defaultAgent={session.defaultAgent} /> : <SignedOut />;
}

function SignedOut() {
  return (
    <main class="sign-in">
      <h1>Offbook</h1>
      <p>This page shows what an agent has in mind, and why.</p>
      <p>
        To open it, run <code>offbook ui</code> in a terminal. It gives a link that works once.
      </p>
    </main>
  );
}

function Frame({ agents, defaultAgent }: { agents: string[] | null; defaultAgent: string }) {
  const place = usePlace();
  const agentId = place.query.agent && (agents === null || agents.includes(place.query.agent)) ? place.query.agent : defaultAgent;
  const { connection, backlog, returns } = useStream(agentId);
  const [isHelpShown, setHelpShown] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useKeys(search, () => setHelpShown((was) => !was));
  useEffect(() => {
    if (returns) dispatchEvent(new Event("offbook:returned"));
  }, [returns]);
  const [id, title, Page] = PAGES.find(([page]) => page === place.page) ?? PAGES[0]!;
  useEffect(() => {
    document.title = `${title} · Offbook`;
  }, [title]);
  const find = (event: Event) => {
    event.preventDefault();
    const wanted = search.current!.value.trim();
    if (wanted) searchFor(wanted);
  };
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={(event) => (event.preventDefault(), document.getElementById("content")?.focus())}>
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href={linkTo("now")}>
          <img src="icon.svg" alt="" width="22" height="22" /> Offbook
        </a>
        <AgentChoice agentId={agentId} agents={agents} />
        <form class="search" role="search" onSubmit={find}>
          <input ref={search} type="search" name="q" placeholder="Search memory   /" aria-label="Search memory" autocomplete="off" />
        </form>
        <span class={`live live-${connection}`} role="status">
          {connection === "live" ? (backlog ? `${count(backlog, "step")} behind` : "live") : connection === "lost" ? "no answer, trying again" : "connecting"}
        </span>
        <ThemeButton />
        <button type="button" class="plain" onClick={() => setHelpShown(true)} aria-label="Keys">
          ?
        </button>
        <button type="button" class="plain" onClick={signOut}>
          Sign out
        </button>
      </header>
      <nav class="side" aria-label="Pages">
        {PAGES.map(([page, name]) => (
          <a key={page} href={linkTo(page)} aria-current={page === id ? "page" : undefined}>
            {name}
          </a>
        ))}
      </nav>
      <main id="content" tabIndex={-1} class={`page page-${id}`}>
        {connection === "lost" && (
          <div class="banner" role="alert">
            The provider does not answer. What you see is as it was; it goes on by itself when the provider is back.
          </div>
        )}
        <Page key={`${agentId}/${id}`} agentId={agentId} of={place.of} query={place.query} />
      </main>
      {isHelpShown && <Help close={() => setHelpShown(false)} />}
    </div>
  );
}

function AgentChoice({ agentId, agents }: { agentId: string; agents: string[] | null }) {
  const status = useAsk("status", agents === null ? { agentId } : null);
  const all = [...new Set([agentId, ...(agents ?? status.value?.agents ?? [])])].sort();
  return (
    <label class="agent">
      <span class="muted">Agent</span>
      <select value={agentId} onChange={(event) => goTo("now", "", { agent: event.currentTarget.value })}>
        {all.map((agent) => (
          <option key={agent}>{agent}</option>
        ))}
      </select>
    </label>
  );
}

function ThemeButton() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "");
  const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const change = () => {
    const next = isDark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    localStorage.setItem("offbook.theme", next);
    setTheme(next);
  };
  return (
    <button type="button" class="plain" onClick={change} aria-label={isDark ? "Use light colours" : "Use dark colours"}>
      {isDark ? "☀" : "☾"}
    </button>
  );
}
