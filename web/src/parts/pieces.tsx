// Small pieces that many pages are made of.
import type { ComponentChildren } from "preact";
import { percent } from "../format";

export function Heading({ title, lead, children }: { title: string; lead?: string; children?: ComponentChildren }) {
  return (
    <header class="page-head">
      <div>
        <h1>{title}</h1>
        {lead && <p class="muted">{lead}</p>}
      </div>
      {children && <div class="page-tools">{children}</div>}
    </header>
  );
}

export function Card({
  title,
  tools,
  children,
  class: name = "",
}: {
  title?: string;
  tools?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${name}`} aria-label={title}>
      {(title || tools) && (
        <div class="card-head">
          {title && <h2>{title}</h2>}
          {tools && <div class="card-tools">{tools}</div>}
        </div>
      )}
      {children}
    </section>
  );
}

/** A sentence of ours in which what stands between backticks is to be typed. */
export function WithCode({ text }: { text: string }) {
  return <>{text.split("`").map((piece, at) => (at % 2 ? <code key={at}>{piece}</code> : piece))}</>;
}

export function Facts({ facts }: { facts: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Badge({ kind, children }: { kind?: string; children: ComponentChildren }) {
  return <span class={`badge ${kind ? `badge-${kind}` : ""}`}>{children}</span>;
}

/** How full a context is, with the place where a swap is due. */
export function Fill({ used, of, due, label }: { used: number; of: number; due: number; label: string }) {
  const share = of > 0 ? Math.min(1, used / of) : 0;
  const state = used >= due && due > 0 ? "due" : share > 0.7 ? "near" : "calm";
  return (
    <div class="fill" role="meter" aria-label={label} aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100}>
      <div class={`fill-done fill-${state}`} style={{ width: `${share * 100}%` }} />
      {due > 0 && of > 0 && <div class="fill-mark" style={{ left: `${(due / of) * 100}%` }} />}
    </div>
  );
}

export interface Share {
  name: string;
  value: number;
  kind: string;
}

/** Parts of a whole, as one bar with its legend. */
export function Shares({ shares, unit = "tokens", total }: { shares: Share[]; unit?: string; total?: number }) {
  const shown = shares.filter((share) => share.value > 0);
  const sum = total ?? shown.reduce((so, share) => so + share.value, 0);
  if (!shown.length) return null;
  return (
    <div class="shares">
      <div class="shares-bar" role="img" aria-label={shown.map((each) => `${each.name} ${percent(each.value, sum)}`).join(", ")}>
        {shown.map((share) => (
          <span key={share.name} class={`part part-${share.kind}`} style={{ flexGrow: share.value / Math.max(1, sum) }} />
        ))}
      </div>
      <ul class="legend">
        {shown.map((share) => (
          <li key={share.name}>
            <i class={`part part-${share.kind}`} aria-hidden="true" />
            {share.name} <span class="muted">{`${Math.round(share.value).toLocaleString("en")} ${unit}`}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function Tabs({ names, chosen, choose }: { names: [string, string][]; chosen: string; choose: (id: string) => void }) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const at = names.findIndex(([id]) => id === chosen);
    const next = names[(at + step + names.length) % names.length];
    if (next) {
      choose(next[0]);
      ((event.currentTarget as HTMLElement).children[names.indexOf(next)] as HTMLElement).focus();
    }
  };
  return (
    <div class="tabs" role="tablist" onKeyDown={move}>
      {names.map(([id, name]) => (
        <button key={id} type="button" role="tab" aria-selected={id === chosen} tabIndex={id === chosen ? 0 : -1} onClick={() => choose(id)}>
          {name}
        </button>
      ))}
    </div>
  );
}

export function download(name: string, text: string, kind = "application/json") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
