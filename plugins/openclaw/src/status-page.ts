/** A page in the host's Control UI with what `/offbook status` says, of every agent. It only reads, and has no script. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { everyStatus, trouble } from "./answers.js";
import type { Provider } from "./client.js";
import { statusLines } from "./dashboard.js";
import type { HostApi } from "./host.js";
import type { Level } from "./settings.js";

const PATH = "/plugins/offbook/status";
const MOST_AGENTS = 20;
const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};
const STYLE = ":root{color-scheme:light dark}body{font:14px/1.5 system-ui,sans-serif;margin:1.5rem}pre{overflow-x:auto;line-height:1.4}";

/** The tab is for whoever may read the host's state; the page answers whoever the gateway lets in. */
export function registerStatusPage(api: HostApi, memory: () => Provider, agents: () => string[], level: Level): void {
  const controls = api.session?.controls;
  if (!api.registerHttpRoute || !controls?.registerControlUiDescriptor) return;
  api.registerHttpRoute({
    path: PATH,
    auth: "gateway",
    match: "exact",
    handler: (request, response) => answered(request, response, memory, agents, level),
  });
  controls.registerControlUiDescriptor({
    surface: "tab",
    id: "status",
    label: "Offbook",
    description: "How your agents' memory stands.",
    icon: "brain",
    group: "agent",
    path: PATH,
    requiredScopes: ["operator.read"],
  });
}

async function answered(
  request: IncomingMessage, response: ServerResponse, memory: () => Provider, agents: () => string[], level: Level,
): Promise<boolean> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { allow: "GET, HEAD" }).end();
    return true;
  }
  const sections = request.method === "GET" ? await sectionsOf(memory(), agents()).catch((error) => [trouble(error)]) : [];
  response.writeHead(200, HEADERS).end(request.method === "GET" ? page(level, sections) : undefined);
  return true;
}

async function sectionsOf(memory: Provider, agents: string[]): Promise<string[]> {
  const { statuses, notes } = await everyStatus(memory, agents, MOST_AGENTS);
  const now = new Date();
  const left = new Set([...agents, ...(statuses[0]?.agents ?? [])]).size - MOST_AGENTS;
  return [
    ...statuses.map((status) => statusLines(status, now)),
    ...(left > 0 ? [`… and ${left} more: openclaw offbook status`] : []),
    ...notes,
  ];
}

/** Every text in it is escaped: names of agents and words of errors are not ours. */
export function page(level: Level, sections: readonly string[]): string {
  const body = sections.map((text) => `<pre>${escaped(text)}</pre>`).join("\n");
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Offbook</title><style>${STYLE}</style></head>
<body>
<h1>Offbook</h1>
<p>Level: ${escaped(level)}. <a href="${PATH}">Refresh</a></p>
${body}
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
