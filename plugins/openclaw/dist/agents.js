const DEFAULT_AGENT = "main";
export function agentsOf(config) {
    const listed = (config?.agents?.list ?? []).map((agent) => agent.id ?? "");
    const named = Object.keys(config?.agents?.entries ?? {});
    const found = [...listed, ...named].map((id) => id.trim()).filter((id) => id !== "");
    return found.length > 0 ? [...new Set(found)] : [DEFAULT_AGENT];
}
