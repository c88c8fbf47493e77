/** Offbook for OpenClaw. Registers, and nothing else. */
import { agentsOf } from "./agents.js";
import { provider } from "./client.js";
import { registerCommands } from "./commands.js";
import { engine } from "./engine.js";
import { registerEnrichment } from "./enrich.js";
import type { HostApi } from "./host.js";
import { registerHostCli } from "./host-cli.js";
import { registerLifecycle } from "./lifecycle.js";
import { registerMethods } from "./methods.js";
import { registerRuntime, running } from "./runtime.js";
import { settingsOf } from "./settings.js";
import { registerStatusPage } from "./status-page.js";
import { registerTools } from "./tools.js";
import { registerTurns } from "./turns.js";

export default {
  id: "offbook",
  name: "Offbook",
  description: "The memory your agents run on.",
  register(api: HostApi): void {
    const settings = settingsOf(api.pluginConfig);
    const idle = provider(settings);
    const memory = () => running()?.provider ?? idle;
    const agents = () => agentsOf(api.config);
    registerCommands(api, memory, agents, () => running()?.report.snapshot() ?? { level: settings.level });
    registerMethods(api, memory, agents);
    registerHostCli(api, memory, agents);
    if (settings.level === "off") return;
    registerRuntime(api, settings, agents);
    registerLifecycle(api, running);
    registerStatusPage(api, memory, agents, settings.level);
    if (settings.level === "capture") return;
    registerTools(api, memory, agents);
    registerTurns(api, running);
    registerEnrichment(api, memory, settings, () => running()?.report);
    if (settings.level === "hot-swap") api.registerContextEngine("offbook", () => engine(running));
  },
};
