// The SDK of Switchboard for Node. Every handler gets a Kernel: calls with it belong to
// what the handler handles, and end with its signal.

/** Serves an extension until the kernel shuts it down or ends, or SIGTERM arrives. */
export function serve(extension: Extension): void;

/** Optional handlers. There may be fewer than the manifest provides, never more. */
export interface Extension {
  /** The manifest's id. */
  id?: string;
  /** Runs once, before the first delivery. An error fails the start. */
  start?(kernel: Kernel): void | Promise<void>;
  /**
   * Background work, which should return when kernel.signal aborts. After an error the
   * extension reports offline, and run is called again after a pause.
   */
  run?(kernel: Kernel): void | Promise<void>;
  /** Runs at shutdown, after the handlers have drained. */
  stop?(kernel: Kernel): void | Promise<void>;
  channel?: Channel;
  /** Offered to agents under <id>/<name>. */
  tools?: readonly AnyTool[];
  /** Handles the events of the manifest's subscriptions. */
  handle?: Handler<Event>;
  /** Handles the results of call. */
  results?: Handler<CallResult>;
  /** Handles the inputs of an agent instead of the kernel's run loop. */
  handleAgent?: Handler<Delivery>;
}

/**
 * Returning acknowledges the event, and commits the effects with the acknowledgement. An
 * error retries it with back-off and counts as a failure, unless it is a Retry, Drop or
 * Unknown. kernel.signal aborts at the subscription's ack wait.
 */
export type Handler<T> = (input: T, kernel: Kernel) => Effects | Promise<Effects>;

export type Effects = readonly Effect[] | Effect | void;

/** One durable change. Each kind needs a grant in the manifest. */
export type Effect = { readonly [kind: string]: object };

export interface PublishOptions {
  /** Events with the same key are handled in order. */
  key?: string;
  /** Publishing the same key again returns the first event. */
  dedupe?: string;
  /** The hashes of files that the payload names. */
  blobs?: readonly string[];
}

/** Publishes an event. The payload is JSON, at most 1 MiB. */
export function publish(topic: string, payload: unknown, options?: PublishOptions): Effect;
/**
 * Writes a key of the extension's own store: bytes, or any other value as JSON. With the
 * version that was read (0: the key must not exist), a change since then is a conflict,
 * and the handler runs again.
 */
export function put(key: string, value: unknown, options?: { version?: number; blobs?: readonly string[] }): Effect;
/** Removes a key of the extension's own store. */
export function remove(key: string, options?: { version?: number }): Effect;
/** Settles the deliveries, not yet taken, of the event published with the dedupe key. */
export function withdraw(dedupe: string): Effect;
/** Asks for session.idle.<id>, once, as soon as the session is idle. */
export function whenIdle(session: string): Effect;
/** Calls a tool of another extension once. The result comes to results. */
export function call(id: string, tool: string, args?: unknown, options?: { replyTo?: string }): Effect;
/** An effect as the contract has it, such as {sessionEnsure: {agent, key}}. */
export function raw(effect: { [kind: string]: object }): Effect;

/** Retries the delivery after a time; not a failure. */
export class Retry extends Error {
  constructor(afterMs: number, reason?: unknown);
}
/** Makes the delivery a dead letter at once. */
export class Drop extends Error {
  constructor(reason: string, effects?: Effects);
}
/** It may or may not have happened. The next attempt is marked as a repetition. */
export class Unknown extends Error {
  constructor(reason: unknown);
}
/** A refusal of the kernel; gone: it has ended; stale: stop, another process has the delivery. */
export class KernelError extends Error {
  constructor(code: KernelErrorCode, message: string, cause?: unknown);
  readonly code: KernelErrorCode;
}
export type KernelErrorCode = "gone" | "conflict" | "denied" | "stale" | "not_found" | "invalid" | "too_large"
  | "unavailable" | "full" | "canceled" | "timeout" | "unknown";

/** Delivers messages to people. */
export interface Channel {
  /**
   * Sends one message. Messages of one conversation come one at a time. Returning means
   * that the platform has it; an error, that it was not sent, unless it is an Unknown.
   */
  send(message: Message, kernel: Kernel): Receipt | void | Promise<Receipt | void>;
  /** Shows a text that is being written. Drafts are best effort. */
  draft?(draft: Draft, kernel: Kernel): void | Promise<void>;
  /** Removes a draft that no message replaces. Without it, draft is called with done. */
  removeDraft?(draft: Draft, kernel: Kernel): void | Promise<void>;
}

export interface Message {
  /** Stays the same when the message is sent again. */
  id: string;
  /** Markdown. A repetition that people may see twice begins with a mark. */
  text: string;
  /** The text without the mark, for operations that repeat nothing, such as an edit. */
  unmarked: string;
  /** The channel's own address; empty: the default recipient. */
  conversation: string;
  thread: string;
  owner: string;
  language: string;
  /** The platform's id of the message that this one answers. */
  replyTo: string;
  /** The draft that this message replaces. */
  draftId: string;
  part: number;
  parts: number;
  /** An earlier attempt may have been sent. */
  repeat: boolean;
  session: string;
  /** Not an answer but a reminder or a message from elsewhere. */
  notice: boolean;
  createdAt: Date;
  attachments: Attachment[];
  actions: Action[];
}

/** A button below a message. To press it is to type its command. */
export interface Action { label: string; command: string }

/** A part of a message other than its text; blob is the hash of its file. */
export interface Attachment {
  kind: "image" | "audio" | "voice" | "video" | "document" | "location" | "contact" | "sticker" | (string & {});
  name?: string;
  blob?: string;
  mime?: string;
  size?: number;
}

/** The attachments that have files, and the message with the others in its text. */
export function splitFiles(message: Message): [Attachment[], Message];

/** The platform's answer: its id of the message, and where that went (as asked, if unset). */
export interface Receipt { id?: string; conversation?: string; thread?: string; effects?: Effects }

export interface Draft {
  conversation: string;
  thread: string;
  id: string;
  replyTo: string;
  /** The whole text so far; empty: the assistant is working. */
  text: string;
  done: boolean;
}

/** What a person wrote. */
export interface UserMessage {
  text: string;
  userId: string;
  userName?: string;
  language?: string;
  conversationId: string;
  threadId?: string;
  /** Others can read the conversation. */
  group?: boolean;
  groupName?: string;
  aside?: boolean;
  agentId?: string;
  messageId?: string;
  edited?: boolean;
  attachments?: readonly Attachment[];
  forwardedFrom?: string;
  quote?: { messageId?: string; sender?: string; text?: string };
  reaction?: boolean;
  /** Unix seconds. */
  sentAt?: number;
}

export interface Event {
  seq: number;
  id: string;
  topic: string;
  key: string;
  source: string;
  payload: any;
  correlationId: string;
  causationId: string;
  hop: number;
  createdAt: Date;
}

export interface Delivery extends Event {
  attempt: number;
  /** An earlier attempt may have had its effect outside of the kernel. */
  uncertain: boolean;
  deadline?: Date;
  token: string;
  turn: any;
}

export interface CallResult { id: string; tool: string; content: string; isError: boolean; event: Event }

/** A JSON Schema; the types of arguments are inferred from it. */
export interface Schema {
  readonly type?: "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: { readonly [name: string]: Schema };
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

/** The type of the values that fit a schema. */
export type Infer<S> =
  S extends { const: infer C } ? C :
  S extends { enum: readonly (infer E)[] } ? E :
  S extends { type: "string" } ? string :
  S extends { type: "number" | "integer" } ? number :
  S extends { type: "boolean" } ? boolean :
  S extends { type: "null" } ? null :
  S extends { type: "array"; items: infer I } ? Infer<I>[] :
  S extends { type: "object"; properties: infer P } ? InferObject<P, S extends { required: readonly (infer R)[] } ? R : never> :
  S extends { type: "object" } ? { [name: string]: unknown } : unknown;
type InferObject<P, R> = { -readonly [K in keyof P as K extends R ? K : never]: Infer<P[K]> }
  & { -readonly [K in keyof P as K extends R ? never : K]?: Infer<P[K]> };

/** One tool. The kernel checks arguments against the schema before call runs. */
export interface Tool<S extends Schema = Schema> {
  name: string;
  /** For the model: its purpose and when to use it. */
  description: string;
  /** Of the arguments, an object. */
  schema?: S;
  /** No effect at all. A tool that gives context to agents is read-only. */
  readOnly?: boolean;
  /** Repeating it has no further effect. */
  idempotent?: boolean;
  /** May be canceled when a new message of the user waits. */
  interruptible?: boolean;
  /** Only waits, as long as its turn lasts. */
  waits?: boolean;
  /** Granted by full name only. */
  private?: boolean;
  /** A person is asked before each call. */
  approve?: boolean;
  /** A call that succeeds ends its turn. */
  final?: boolean;
  /** Also this slash command, which the manifest names under provides.commands. */
  command?: string;
  /** Its value is the result: a string, a value that becomes JSON, or a ToolResult. */
  call(args: Infer<S>, kernel: Kernel, call: ToolCall): unknown;
  /** The answer to the command, in Markdown, from the content of a result. */
  say?(content: string, language: string): string;
}
export type AnyTool = Omit<Tool, "call"> & { call(args: any, kernel: Kernel, call: ToolCall): unknown };

/** Checks a tool, and infers the type of its arguments from its schema. */
export function tool<const S extends Schema>(definition: Tool<S>): AnyTool;

/** A result with effects, which are committed with it, or files that it names. */
export function result(value: unknown, options?: ResultOptions): ToolResult;
export interface ResultOptions {
  effects?: Effects;
  blobs?: readonly string[];
  isError?: boolean;
  /** Of a tool that gives context: it has nothing to say for any arguments. */
  nothing?: boolean;
}
export class ToolResult {
  constructor(value: unknown, options?: ResultOptions);
  readonly content: string;
}

/** About a call. A second one with the same id repeats the first. */
export interface ToolCall {
  id: string;
  name: string;
  session: string;
  agent: string;
  /** Opaque handle of the conversation that asked. */
  replyTo: string;
  channel: string;
  sender: string;
  language: string;
  group: boolean;
  thread: string;
  input: string;
  memory: string[];
  timezone: string;
  repeat: boolean;
  /** The slash command with which a person called it. */
  command: string;
  /** For whom it is called. Store it with what people set up, and show only what sees allows. */
  principal: Principal | null;
  sees(setBy: Principal): boolean;
}

export interface Principal {
  person?: string;
  conversation?: string;
  group?: string;
  confined?: boolean;
  own?: boolean;
  extension?: string;
  accounts?: string[];
}

/** Whether a call for principal may use and change what was set up by setBy. */
export function sees(principal: Principal | null, setBy: Principal): boolean;

/** A part of a model's answer. */
export interface Delta {
  text?: string;
  call?: { providerId?: string; name: string; arguments: Uint8Array };
  usage?: { inputTokens?: number; outputTokens?: number; cachedTokens?: number; costMicros?: number; currency?: string };
  finish?: "stop" | "length" | "tool_calls" | "refusal";
  model?: string;
  context?: number;
}

/** One entry of the extension's own store; version 0: the key does not exist. */
export interface Value { key: string; version: number; bytes: Uint8Array; /** Parsed as JSON. */ readonly value: any }
export interface Blob { hash: string; size: number }
export type Bytes = Uint8Array | AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
type LogMethod = (message: string, fields?: { [name: string]: unknown }) => void;

/** The kernel's services, in the lane of a handler. */
export interface Kernel {
  readonly id: string;
  readonly name: string;
  /** The manifest's and config.yaml's configuration, checked against the manifest's schema. */
  readonly config: any;
  /** The agent section of the manifest. */
  readonly agent: any;
  /** For sockets. */
  readonly runDir: string;
  /** For files that outlive the process. Machines of a cluster do not share it: see data in the manifest. */
  readonly dataDir: string;
  readonly timezone: string;
  /** Aborts when the handler has to end. */
  readonly signal: AbortSignal;
  /** Aborts when the extension begins to shut down. */
  readonly draining: AbortSignal;
  /** Lines of JSON on stderr. */
  readonly log: { trace: LogMethod; debug: LogMethod; info: LogMethod; warn: LogMethod; error: LogMethod };
  /** A secret that the manifest names; empty if it is not set. */
  secret(name: string): string;
  /** Commits effects in one transaction; resolves when they are on disk. Repeating an id repeats nothing. */
  commit(effects: Effects, options?: { id?: string }): Promise<EffectResult[]>;
  /** Reports a person's message; effects, such as a cursor, are committed with it. */
  receive(message: UserMessage, options?: { dedupe?: string; effects?: Effects }): Promise<EffectResult>;
  get(key: string): Promise<Value>;
  /** The keys of a prefix, ascending, after one. */
  scan(prefix?: string, after?: string): AsyncIterable<Value>;
  /** Stores a file, which is kept for an hour and as long as something committed names it. */
  putBlob(source: Bytes): Promise<Blob>;
  /** A stored file; its bytes are checked at the end. */
  getBlob(name: string): Promise<Blob & { bytes: AsyncIterable<Uint8Array> }>;
  /** Calls a read-only tool that the manifest names under permissions.tools. */
  ask(tool: string, args?: unknown): Promise<{ content: string; isError: boolean }>;
  /** Asks a model: kernel.v1 CompleteRequest, in camel case. */
  complete(request: { model: string; purpose?: string; messages: unknown[]; tools?: unknown[] }): AsyncIterable<Delta>;
  /** Events from now on, to display them. */
  watch(topics: readonly string[]): AsyncIterable<Event>;
  /** Reports whether the extension can do its work; detail says why not and what to do. */
  setReadiness(state: "ready" | "unconfigured" | "degraded" | "offline", detail?: string): Promise<void>;
  /** Replaces the tools, from run on. */
  setTools(tools: readonly AnyTool[]): Promise<void>;
  /**
   * Any other method of switchboard.kernel.v1 with one answer, in this lane, such as
   * rpc("Sessions", "History", {session}), rpc("Channels", "List") or rpc("Sessions", "Presence").
   */
  rpc(service: string, method: string, request?: object): Promise<any>;
}

export interface EffectResult {
  eventId: string;
  duplicate: boolean;
  version: number;
  session: string;
  conversation: string;
}
