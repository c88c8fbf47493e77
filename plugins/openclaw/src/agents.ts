/** The agents that the host's own configuration names (A6): nobody has to tell Offbook about them. */
import type { HostConfig } from "./host.js";

const DEFAULT_AGENT = "main";

export function agentsOf(config: HostConfig | undefined): string[] {
  const listed = (config?.agents?.list ?? []).map((agent) => agent.id ?? "");
  const named = Object.keys(config?.agents?.entries ?? {});
  const found = [...listed, ...named].map((id) => id.trim()).filter((id) => id !== "");
  return found.length > 0 ? [...new Set(found)] : [DEFAULT_AGENT];
}
