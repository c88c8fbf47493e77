/** The least of each kind that a plugin can register: what the harness is tried with, apart from our own plugin. */
const MARK = "<<the tiny engine was here>>";

function engine(config) {
  return {
    info: {
      id: "tiny",
      name: "Tiny",
      ownsCompaction: true,
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
    },
    async ingest() {
      return { ingested: true };
    },
    async assemble({ messages }) {
      const shown = messages.filter((message) => message.role !== config.drops);
      return { messages: shown, estimatedTokens: 10, systemPromptAddition: MARK };
    },
    async compact() {
      return { ok: true, compacted: false, reason: "tiny" };
    },
    async commitTurn() {
      return { status: "committed" };
    },
  };
}

export default {
  id: "tiny",
  name: "Tiny",
  register(api) {
    api.registerTool({
      name: "tiny_tool",
      label: "Tiny",
      description: "Says what it was given.",
      parameters: { type: "object", properties: { word: { type: "string" } } },
      catalogMode: "direct-only",
      async execute(_id, { word }) {
        return { content: [{ type: "text", text: `the tool says ${word}` }], details: {} };
      },
    });
    api.registerCommand({
      name: "tiny-command",
      description: "Says what it was given.",
      acceptsArgs: true,
      handler: async ({ args }) => ({ text: `the command says ${args}` }),
    });
    api.registerGatewayMethod("tiny.hello", ({ params, respond }) => respond(true, { heard: params }), {
      scope: "operator.read",
    });
    if (api.pluginConfig?.level === "hot-swap") api.registerContextEngine("tiny", () => engine(api.pluginConfig));
  },
};
