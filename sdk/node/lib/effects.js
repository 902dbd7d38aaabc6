// What handlers return and throw, and the payloads of a channel.
import { KernelError } from "./wire.js";

const encode = (value, what) => {
  const text = value === undefined ? undefined : JSON.stringify(value);
  if (text === undefined) throw new KernelError("invalid", `${what}: not a JSON value`);
  return Buffer.from(text);
};

/** Effects in the form of the contract: of one, several or none. */
export const effectsOf = (given) => (Array.isArray(given) ? given : given ? [given] : []);

export const publish = (topic, payload, { key = "", dedupe = "", blobs = [] } = {}) =>
  ({ publish: { topic, key, dedupeKey: dedupe, blobs, payload: encode(payload, `payload of ${topic}`) } });

export const put = (key, value, { version, blobs = [] } = {}) => ({
  put: { key, version, blobs, value: value instanceof Uint8Array ? value : encode(value, `value of key ${key}`) },
});

export const remove = (key, { version } = {}) => ({ delete: { key, version } });

export const withdraw = (dedupe) => ({ withdraw: { dedupeKey: dedupe } });

export const whenIdle = (session) => ({ sessionIdle: { session } });

export const call = (id, tool, args = {}, { replyTo = "" } = {}) =>
  ({ call: { id, tool, replyTo, arguments: encode(args, `arguments of ${tool}`) } });

export const raw = (effect) => effect;

/** How a delivery ends whose handler throws it; kind is that of the contract's Outcome. */
export class Ending extends Error {
  constructor(kind, reason, more) {
    super(String(reason?.message ?? reason), { cause: reason });
    Object.assign(this, { kind, name: new.target.name }, more);
  }
}

export class Retry extends Ending {
  constructor(afterMs, reason = "retry") { super("KIND_RETRY", reason, { retryAfterMs: Math.max(0, Math.round(afterMs)) }); }
}

export class Drop extends Ending {
  constructor(reason, effects) { super("KIND_DROP", reason, { effects: effectsOf(effects) }); }
}

export class Unknown extends Ending { constructor(reason) { super("KIND_UNKNOWN", reason); } }

export class ToolResult {
  constructor(value, { effects = [], blobs = [], isError = false, nothing = false } = {}) {
    Object.assign(this, { content: contentOf(value), effects, blobs, isError, nothing });
  }
}

export const result = (value, options) => new ToolResult(value, options);

const contentOf = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? {}));

export const tool = (definition) => definition;

/** A payload of the contract: its names have underscores. */
export function snake(value) {
  if (Array.isArray(value)) return value.map(snake);
  if (value === null || typeof value !== "object") return value;
  const name = (camel) => camel.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([key, v]) => [name(key), snake(v)]));
}

export const blobsOf = (attachments = []) => [...new Set(attachments.map((a) => a.blob).filter(Boolean))];

/** The value of JSON. */
export function decode(bytes, what) {
  try {
    return JSON.parse(bytes.toString());
  } catch (error) {
    throw new Drop(`decode ${what}: ${error.message}`);
  }
}

export const eventOf = (e) =>
  ({ ...e, createdAt: new Date(e.createdAtUs / 1000), payload: decode(e.payload, `payload of ${e.topic}`) });

export const draftOf = ({ conversation, thread, draftId: id, replyTo, text, done }) =>
  ({ conversation, thread, id, replyTo, text, done });

export function messageOf({ id, payload: p, uncertain: repeat, createdAt }) {
  const { text, conversation = "", thread = "", owner = "", language = "", part = 0, parts = 0, session = "" } = p;
  return {
    id, text, unmarked: p.unmarked || text, conversation, thread, owner, language, part, parts, session, repeat, createdAt,
    replyTo: p.reply_to ?? "", draftId: p.draft_id ?? "", notice: p.kind !== "reply",
    attachments: p.attachments ?? [], actions: p.actions ?? [],
  };
}

export function splitFiles(message) {
  const files = message.attachments.filter((a) => a.blob);
  const rest = message.attachments.filter((a) => !a.blob).map((a) => a.name || `[${a.kind}]`);
  const added = (text) => [text, ...rest].join("\n").trim();
  return [files, { ...message, attachments: [], text: added(message.text), unmarked: added(message.unmarked) }];
}

export function sees(principal, setBy) {
  const { accounts = [], ...p } = principal ?? {};
  if (!p.person && !p.group && !p.confined && !p.own && !p.extension && !accounts.length) return true; // the owner
  if (p.group && p.group === setBy.group) return true;
  if (p.confined && p.group) return false;
  const mine = setBy.person && p.own && p.person === setBy.person;
  return p.confined || setBy.own ? Boolean(mine || accounts.includes(setBy.person)) : true;
}
