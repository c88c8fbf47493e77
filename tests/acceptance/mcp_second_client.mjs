// A client that shares no code with the official SDK: initialize, tools/list, tools/call, resources and a prompt.
// node mcp_second_client.mjs '{"type":"http","url":…,"headers":…}' or '{"type":"stdio","command":…,"args":…,"env":…}'
import { createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport } from "@ai-sdk/mcp/mcp-stdio";

const { type, ...rest } = JSON.parse(process.argv[2]);
const transport = type === "http" ? { type, ...rest } : new Experimental_StdioMCPTransport(rest);
const client = await createMCPClient({ transport });
const listed = await client.listTools();
const tools = client.toolsFromDefinitions(listed);
const call = (name, given) => tools[name].execute(given, { messages: [], toolCallId: name });
const said = { content: "我的猫叫 Ada 🐈", role: "user", sessionId: `second ${type}` };
const report = {
  server: client.serverInfo.name,
  tools: listed.tools.map((tool) => tool.name),
  recorded: await call("memory_record", said),
  recalled: await call("memory_recall", { query: "Ada", sessionId: said.sessionId, scope: "session" }),
  refused: await call("memory_forget", { matching: "Ada", confirm: true }),
  resource: await client.readResource({ uri: `offbook://sessions/${encodeURIComponent(said.sessionId)}` }),
  prompt: await client.experimental_getPrompt({ name: "handover", arguments: { about: "Ada" } }),
};
await client.close();
console.log(JSON.stringify(report));
