// The client of the kernel's services that handlers get.
import { createHash } from "node:crypto";
import { blobsOf, effectsOf, eventOf, publish, snake } from "./effects.js";
import { KernelError } from "./wire.js";

export class Kernel {
  #link;
  #lane;

  /** shared is what all kernels of an activation have; lane and signal are those of one handler. */
  constructor(shared, link, lane, signal) {
    Object.assign(this, shared, { signal });
    this.#link = link;
    this.#lane = lane;
  }

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
    const parts = this.#stream("Blobs", "Get", { hash: name });
    const { value: first } = await parts.next();
    return { ...first.blob, bytes: checked(parts, first) };
  }

  async ask(name, args = {}) {
    const { content, isError } = await this.rpc("Tools", "Call", { name, arguments: Buffer.from(JSON.stringify(args)) });
    return { content, isError };
  }

  complete(request) { return this.#stream("Models", "Complete", request); }

  async *watch(topics) {
    for await (const event of this.#stream("Bus", "Watch", { topics })) yield eventOf(event);
  }

  #stream(service, method, request) {
    return this.#link.stream(service, method, { lane: this.#lane, ...request }, this.signal);
  }

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
