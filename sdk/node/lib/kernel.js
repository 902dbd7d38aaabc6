// The client of the kernel's services that handlers get, and its connection.
import { createHash } from "node:crypto";
import { Readable, addAbortSignal } from "node:stream";
import { pipeline } from "node:stream/promises";
import grpc from "@grpc/grpc-js";
import { blobsOf, effectsOf, eventOf, publish, snake } from "./effects.js";
import { KernelError, fromStatus, maxCommit, options, service, sizeOf } from "./wire.js";

const chunk = 256 << 10;

/** One activation's connection to the kernel. */
export class Link {
  #client; #files; // files on a connection of their own
  #metadata = new grpc.Metadata();
  #closed = false;
  #commits; // the stream of commits

  constructor({ kernelAddress, kernelToken }) {
    const client = (more) => new grpc.Client(kernelAddress, grpc.credentials.createInsecure(), { ...options, ...more });
    this.#client = client();
    this.#files = client({ "grpc.use_local_subchannel_pool": 1 });
    this.#metadata.set("switchboard-token", kernelToken);
  }

  /** Resolves when the kernel answers; calls lost when the connection breaks after that. */
  async connect(lost) {
    await new Promise((resolve, reject) => this.#client.waitForReady(Date.now() + 10_000, (error) =>
      (error ? reject(new KernelError("gone", `connect to the kernel: ${error.message}`)) : resolve(undefined))));
    this.#client.getChannel().watchConnectivityState(grpc.connectivityState.READY, Infinity, () => this.#closed || lost());
  }

  /** Begins a call with what goes before and after the metadata. */
  call(kind, name, method, before, ...after) {
    if (this.#closed) throw new KernelError("gone", "the extension has shut down");
    const { path, requestSerialize, responseDeserialize } = service(`switchboard.kernel.v1.${name}`)[method];
    const client = name === "Blobs" ? this.#files : this.#client;
    return client[`make${kind}Request`](path, requestSerialize, responseDeserialize, ...before, this.#metadata, ...after)
      .on("error", () => {}); // also when nothing waits for it
  }

  /** Sends a commit over the stream that all share, and calls done with its receipt. */
  commit(commit, done) {
    (this.#commits ??= this.#openCommits()).waiting.push(done);
    this.#commits.write({ commits: [commit] });
  }

  #openCommits() {
    const waiting = []; // for receipts, which come in the order of the commits
    const stream = Object.assign(this.call("BidiStream", "Bus", "Commit", []), { waiting });
    stream.on("data", ({ receipts }) => receipts.forEach(({ error, results }) => waiting.shift()(error, results)));
    return stream.on("status", (status) => {
      if (this.#commits === stream) this.#commits = undefined;
      const { code, message } = status.code ? fromStatus(status) : { code: "gone", message: "the kernel has ended" };
      const error = new KernelError(code, `commit, sent but not confirmed: ${message}`);
      waiting.splice(0).forEach((done) => done(error));
    });
  }

  close() {
    this.#closed = true;
    this.#commits?.cancel();
    for (const client of [this.#client, this.#files]) client.close();
  }
}

/** What begin calls done with, unless signal aborts before; then the call that begin returned is cancelled. */
async function until(signal, begin) {
  signal.throwIfAborted();
  let call;
  const abort = () => call.cancel();
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener("abort", abort);
      call = begin((error, value) => (error ? reject(error) : resolve(value)));
    });
  } catch (error) {
    throw signal.aborted ? signal.reason : fromStatus(error);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function* inChunks(source) {
  for await (const bytes of source) for (let at = 0; at < bytes.length; at += chunk) yield { data: bytes.subarray(at, at + chunk) };
}

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
    const commit = { id, lane: this.#lane, effects: effectsOf(effects) };
    if (sizeOf(commit) > maxCommit) throw new KernelError("too_large", "the commit is larger than 16 MiB");
    return until(this.signal, (done) => {
      this.#link.commit(commit, done);
      return { cancel: () => done(this.signal.reason) }; // the stream is that of all commits
    });
  }

  async receive(message, { dedupe = "", effects = [] } = {}) {
    const reported = publish("user.message", snake(message), { dedupe, blobs: blobsOf(message.attachments) });
    return (await this.commit([reported, ...effectsOf(effects)]))[0];
  }

  async get(key) { return valueOf({ ...(await this.rpc("KV", "Get", { key })), key }); }

  async *scan(prefix = "", after = "") {
    for (let more = true; more;) {
      const page = await this.rpc("KV", "Scan", { prefix, after });
      for (const value of page.values) yield valueOf(value);
      after = page.values.at(-1)?.key ?? after;
      more = page.more;
    }
  }

  putBlob(source) {
    return until(this.signal, (done) => {
      const call = this.#link.call("ClientStream", "Blobs", "Put", [], done);
      pipeline(Readable.from(source instanceof Uint8Array ? [source] : source), inChunks, call).catch((error) => {
        done(error);
        call.cancel(); // a file that was not read to its end is not stored
      });
      return call;
    });
  }

  async getBlob(name) {
    const parts = this.#stream("Blobs", "Get", { hash: name });
    const { value: first } = await parts.next();
    return { ...first.blob, bytes: checked(parts, first) };
  }

  ask(name, args = {}) { return this.rpc("Tools", "Call", { name, arguments: Buffer.from(JSON.stringify(args)) }); }

  complete(request) { return this.#stream("Models", "Complete", request); }

  async *watch(topics) { for await (const event of this.#stream("Bus", "Watch", { topics })) yield eventOf(event); }

  /** A call whose answer is a stream. */
  async *#stream(service, method, request) {
    this.signal.throwIfAborted();
    const call = this.#link.call("ServerStream", service, method, [{ lane: this.#lane, ...request }]);
    try {
      yield* addAbortSignal(this.signal, call);
    } catch (error) {
      throw this.signal.aborted ? this.signal.reason : fromStatus(error);
    } finally {
      call.cancel();
    }
  }

  rpc(service, method, request = {}) {
    return until(this.signal, (done) => this.#link.call("Unary", service, method, [{ lane: this.#lane, ...request }], done));
  }
}

const valueOf = ({ key, value, version }) => ({
  key, version, bytes: value,
  get value() { return version === 0 ? undefined : JSON.parse(value.toString()); },
});

/** The bytes of a file, whose hash is checked at the end. */
async function* checked(parts, first) {
  const sum = createHash("sha256");
  for (let part = { value: first }; !part.done; part = await parts.next()) {
    sum.update(part.value.data);
    yield part.value.data;
  }
  if (sum.digest("hex") !== first.blob.hash) {
    throw new KernelError("not_found", `read file ${first.blob.hash}: its bytes on disk are damaged; a backup may have them`);
  }
}
