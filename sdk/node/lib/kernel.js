// The client of the kernel's services that handlers get.
import { createHash } from "node:crypto";
import { blobsOf, effectsOf, eventOf, publish, snake } from "./effects.js";
import { KernelError } from "./wire.js";

export class Kernel {
  #activation;
  #lane;

  /** lane and signal are those of one handler. */
  constructor(activation, lane, signal) {
    this.#activation = activation;
    this.#lane = lane;
    this.signal = signal;
  }

  get #link() { return this.#activation.link; }
  get #init() { return this.#activation.init; }
  get id() { return this.#init.id; }
  get name() { return this.#init.name; }
  get config() { return this.#activation.config; }
  get agent() { return this.#init.agent; }
  get runDir() { return this.#init.runDir; }
  get dataDir() { return this.#init.dataDir; }
  get timezone() { return this.#init.timezone || "UTC"; }
  get log() { return this.#activation.log; }
  get draining() { return this.#activation.draining.signal; }

  secret(name) { return this.#init.secrets[name] ?? ""; }

  async commit(effects, { id = "" } = {}) {
    return this.#link.commit({ id, lane: this.#lane, effects: effectsOf(effects) }, this.signal);
  }

  async receive(message, { dedupe = "", effects = [] } = {}) {
    const reported = publish("user.message", snake(message), { dedupe, blobs: blobsOf(message.attachments) });
    const [result] = await this.commit([reported, ...effectsOf(effects)]);
    return result;
  }

  async get(key) {
    return valueOf({ ...(await this.rpc("KV", "Get", { key })), key });
  }

  async *scan(prefix = "", after = "") {
    for (let more = true; more;) {
      const page = await this.rpc("KV", "Scan", { prefix, after });
      for (const value of page.values) yield valueOf(value);
      after = page.values.at(-1)?.key ?? after;
      more = page.more;
    }
  }

  putBlob(source) { return this.#link.putBlob(source, this.signal); }

  async getBlob(name) {
    const parts = this.#link.stream("Blobs", "Get", { hash: name, lane: this.#lane }, this.signal);
    const { value: first } = await parts.next();
    return { ...first.blob, bytes: checked(parts, first) };
  }

  async findBlob(name) {
    const parts = this.#link.stream("Blobs", "Get", { hash: name, lane: this.#lane }, this.signal);
    const { value: first } = await parts.next();
    await parts.return(undefined);
    return first.blob;
  }

  async ask(name, args = {}) {
    const request = { name, arguments: Buffer.from(JSON.stringify(args)) };
    const { content, isError } = await this.rpc("Tools", "Call", request);
    return { content, isError };
  }

  complete(request) { return this.#link.stream("Models", "Complete", { ...request, lane: this.#lane }, this.signal); }

  async *watch(topics) {
    for await (const event of this.#link.stream("Bus", "Watch", { topics }, this.signal)) yield eventOf(event);
  }

  session(id) { return this.rpc("Sessions", "Get", { session: id }); }
  async channels() { return (await this.rpc("Channels", "List")).channels; }
  async commands() { return (await this.rpc("Channels", "List")).commands; }

  async presence() {
    const { userAtUs, busy } = await this.rpc("Sessions", "Presence");
    return { busy, userAt: userAtUs ? new Date(userAtUs / 1000) : undefined };
  }

  setReadiness(state, detail = "") { return this.#activation.setReadiness(state, detail); }
  setTools(tools) { return this.#activation.setTools(tools); }

  rpc(service, method, request = {}) {
    return this.#link.unary(service, method, { lane: this.#lane, ...request }, this.signal);
  }
}

const valueOf = ({ key, value, version }) => ({
  key, version, bytes: value,
  get value() { return version === 0 ? undefined : JSON.parse(value.toString()); },
});

/** The bytes of a file, whose hash is checked at the end. */
async function* checked(parts, first) {
  const sum = createHash("sha256").update(first.data);
  if (first.data.length) yield first.data;
  for await (const { data } of parts) {
    sum.update(data);
    yield data;
  }
  if (sum.digest("hex") !== first.blob.hash) {
    throw new KernelError("not_found", `read file ${first.blob.hash}: its bytes on disk are damaged; a backup may have them`);
  }
}
