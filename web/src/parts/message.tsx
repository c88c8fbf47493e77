// One message, as text. Nothing in it is ever read as HTML, and no address in it becomes a link.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { time } from "../format";
import type { Message } from "../wire";

type Block = Record<string, unknown>;
const LONG_CHARS = 1_600;
const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/;

export function textOf(message: Message): string {
  if (typeof message.content === "string") return message.content;
  return message.content.map((block) => blockText(block as Block)).join("\n");
}

function blockText(block: Block): string {
  for (const key of ["text", "content", "output"]) {
    const value = block[key];
    if (typeof value === "string") return value;
    if (Array.isArray(value)) return value.map((each) => blockText(each as Block)).join("\n");
  }
  return JSON.stringify(block);
}

export function MessageBody({ message }: { message: Message }) {
  if (typeof message.content === "string") return <Text text={message.content} />;
  return (
    <>
      {message.content.map((block, at) => (
        <BlockBody key={at} block={block as Block} />
      ))}
    </>
  );
}

function BlockBody({ block }: { block: Block }) {
  const type = String(block.type ?? "");
  if (typeof block.text === "string" && (type === "text" || type === "" || type.endsWith("_text"))) {
    return <Text text={block.text} />;
  }
  if (/call|use/.test(type) && (block.name || block.function)) {
    const name = String(block.name ?? (block.function as Block | undefined)?.name ?? "tool");
    const given = block.arguments ?? block.input ?? (block.function as Block | undefined)?.arguments ?? {};
    return (
      <details class="block">
        <summary>
          <span class="block-kind">calls</span> <code>{name}</code>
        </summary>
        <pre>{typeof given === "string" ? given : JSON.stringify(given, null, 2)}</pre>
      </details>
    );
  }
  if (/result|output/.test(type)) {
    return (
      <details class="block" open={blockText(block).length < 400}>
        <summary>
          <span class="block-kind">result</span>
        </summary>
        <Text text={blockText(block)} />
      </details>
    );
  }
  const picture = pictureOf(block);
  if (picture) return <img class="picture" src={picture} alt="An image of this message" />;
  return (
    <details class="block">
      <summary>
        <span class="block-kind">{type || "block"}</span>
      </summary>
      <pre>{JSON.stringify(block, null, 2).slice(0, 20_000)}</pre>
    </details>
  );
}

function pictureOf(block: Block): string | null {
  const source = block.source as Block | undefined;
  const address = block.image_url as Block | string | undefined;
  const data = source?.data ?? block.data;
  const kind = source?.media_type ?? block.mimeType ?? block.media_type;
  const found = [block.url, typeof address === "string" ? address : address?.url, kind && data && `data:${kind};base64,${data}`, data];
  return (found.find((each) => typeof each === "string" && PICTURE.test(each)) as string | undefined) ?? null;
}

export function Text({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > LONG_CHARS * 1.2;
  return (
    <div class="text">
      {isLong && !isWhole ? `${text.slice(0, LONG_CHARS)} …` : text}
      {isLong && (
        <button type="button" class="link" onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`}
        </button>
      )}
    </div>
  );
}

/** Text with each place of `needle` marked. */
export function Marked({ text, needle }: { text: string; needle: string }) {
  if (!needle) return <>{text}</>;
  const pieces: ComponentChildren[] = [];
  const low = text.toLowerCase();
  const wanted = needle.toLowerCase();
  let from = 0;
  for (let at = low.indexOf(wanted); at >= 0 && pieces.length < 400; at = low.indexOf(wanted, from)) {
    pieces.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + needle.length)}</mark>);
    from = at + needle.length;
  }
  return <>{[...pieces, text.slice(from)]}</>;
}

export function MessageRow({
  message,
  seq,
  at,
  tools,
  notes,
}: {
  message: Message;
  seq?: number | undefined;
  at?: string | undefined;
  tools?: ComponentChildren;
  notes?: ComponentChildren;
}) {
  const said = message.ts ?? at;
  return (
    <article class={`message role-${message.role}`}>
      <div class="message-head">
        <span class="role">{message.name ?? message.role}</span>
        {message.name && message.name !== message.role && <span class="muted">{message.role}</span>}
        {message.origin && <span class="muted">from {message.origin}</span>}
        {message.model && <span class="muted">{message.model}</span>}
        {notes}
        <span class="grow" />
        {tools}
        {said && <time dateTime={said}>{time(said)}</time>}
        {seq !== undefined && <span class="seq">#{seq}</span>}
      </div>
      <MessageBody message={message} />
    </article>
  );
}
