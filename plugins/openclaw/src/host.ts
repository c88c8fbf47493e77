/** The few shapes of the host that we use. Its plugin interface is experimental and has no stable types to import, so these
 * are written by hand, loosely: whatever may be missing there is optional here. */

export interface Logger {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
  debug?(text: string): void;
}

export interface Block {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  [key: string]: unknown;
}

export interface HostMessage {
  role: string;
  content?: string | Block[];
  timestamp?: number;
  toolCallId?: string;
  toolName?: string;
  isError?: boolean;
  model?: string;
  provider?: string;
  api?: string;
  stopReason?: string;
  usage?: { input?: number; output?: number; cacheRead?: number; cacheWrite?: number; totalTokens?: number };
  idempotencyKey?: string;
  __openclaw?: { runId?: string; [key: string]: unknown };
  [key: string]: unknown;
}

/** Whose transcript it is. */
export interface Place {
  agentId: string;
  sessionKey: string;
  sessionId: string;
}

export interface TranscriptUpdate {
  target?: Place;
  agentId?: string;
  sessionId?: string;
  sessionKey?: string;
  message?: HostMessage;
  messageId?: string;
  messageSeq?: number;
  runId?: string;
}

export interface TurnContext {
  runId?: string;
  agentId?: string;
  sessionKey?: string;
  sessionId?: string;
  trigger?: string;
  modelId?: string;
  contextTokenBudget?: number;
  toolCallId?: string;
}

export interface CommandContext {
  agentId?: string;
  sessionKey?: string;
  sessionId?: string;
  args?: string;
  channel?: string;
}

export interface ToolResult {
  content: { type: "text"; text: string }[];
  details?: unknown;
}

export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: object;
  catalogMode: "direct-only";
  execute(id: string, parameters: Record<string, unknown>, signal?: AbortSignal): Promise<ToolResult>;
}

/** What the host knows of who calls a tool; handed to a tool's factory. */
export interface ToolContext {
  agentId?: string;
  sessionKey?: string;
  sessionId?: string;
}

export interface CompletionResult {
  text: string;
  provider: string;
  model: string;
  stopReason?: string;
  usage?: { inputTokens?: number; outputTokens?: number; cacheReadTokens?: number; totalTokens?: number; costUsd?: number };
}

export interface ServiceContext {
  stateDir: string;
  logger: Logger;
}

/** Structural only where we touch it: commander's program, one level deep. */
export interface CliCommand {
  command(name: string): CliCommand;
  description(text: string): CliCommand;
  option(flags: string, description: string, fallback?: string): CliCommand;
  argument(name: string, description?: string): CliCommand;
  action(run: (...values: never[]) => void | Promise<void>): CliCommand;
}

export interface HostApi {
  id: string;
  version?: string;
  registrationMode?: string;
  config: HostConfig;
  pluginConfig?: Record<string, unknown>;
  rootDir?: string;
  logger: Logger;
  runtime: {
    version?: string;
    events: { onSessionTranscriptUpdate(listener: (update: TranscriptUpdate) => void): () => void };
    llm?: { complete(request: object): Promise<CompletionResult> };
    [key: string]: unknown;
  };
  on(hook: string, handler: (event: never, context: never) => unknown, options?: object): void;
  registerTool(tool: Tool | ((context: ToolContext) => Tool), options?: object): void;
  registerCommand(command: object): void;
  registerService(service: {
    id: string;
    start(context: ServiceContext): void | Promise<void>;
    stop?(context: ServiceContext): void | Promise<void>;
  }): void;
  registerGatewayMethod(name: string, handler: (request: GatewayRequest) => void | Promise<void>, options?: object): void;
  registerCli(registrar: (context: { program: CliCommand }) => void, options?: object): void;
  registerContextEngine(id: string, factory: (context: object) => unknown): void;
  registerAgentToolResultMiddleware?(handler: (...values: never[]) => unknown, options?: object): void;
  registerMemoryCapability?(capability: object): void;
  registerHttpRoute?(route: HttpRoute): void;
  session?: { controls?: { registerControlUiDescriptor?(descriptor: object): void } };
}

export interface HttpRoute {
  path: string;
  auth: "gateway" | "plugin";
  match?: "exact" | "prefix";
  /** True: the request is answered. */
  handler(request: import("node:http").IncomingMessage, response: import("node:http").ServerResponse): Promise<boolean>;
}

export interface GatewayRequest {
  params?: Record<string, unknown>;
  respond(ok: boolean, payload?: unknown, error?: unknown): void;
}

export interface HostConfig {
  agents?: { list?: { id?: string; default?: boolean }[]; entries?: Record<string, { default?: boolean }>; defaults?: object };
  session?: { mainKey?: string };
  plugins?: {
    slots?: { contextEngine?: string; memory?: string };
    entries?: Record<string, { hooks?: { allowConversationAccess?: boolean; allowPromptInjection?: boolean } }>;
  };
  [key: string]: unknown;
}
