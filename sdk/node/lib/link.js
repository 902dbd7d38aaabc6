// One activation's connection to the kernel.
import { Readable, addAbortSignal } from "node:stream";
import { pipeline } from "node:stream/promises";
import grpc from "@grpc/grpc-js";
import { KernelError, fromStatus, maxCommit, options, service, sizeOf } from "./wire.js";

const patience = 10_000;
const chunk = 256 << 10;

export class Link {
  #client;
  #files; // on a connection of their own
  #metadata = new grpc.Metadata();
  #stream; // of commits
  #sent = []; // what to call with the receipts of commits, in their order
  #lost = () => {};
  #closed = false;

  constructor({ kernelAddress, kernelToken }) {
    const client = (more) => new grpc.Client(kernelAddress, grpc.credentials.createInsecure(), { ...options, ...more });
    this.#client = client();
    this.#files = client({ "grpc.use_local_subchannel_pool": 1 });
    this.#metadata.set("switchboard-token", kernelToken);
  }

  /** Resolves when the kernel answers; calls lost when the connection breaks after that. */
  async connect(lost) {
    await new Promise((resolve, reject) => this.#client.waitForReady(Date.now() + patience, (error) =>
      (error ? reject(new KernelError("gone", `connect to the kernel: ${error.message}`)) : resolve(undefined))));
    this.#lost = lost;
    this.#open(); // the end of its stream tells that the kernel has ended
  }

  #call(kind, name, method, ...args) {
    if (this.#closed) throw new KernelError("gone", "the extension has shut down");
    const { path, requestSerialize, responseDeserialize } = service(`switchboard.kernel.v1.${name}`)[method];
    const client = name === "Blobs" ? this.#files : this.#client;
    const call = client[`make${kind}Request`](path, requestSerialize, responseDeserialize, ...args);
    return call.on("error", () => {}); // also when nothing waits for it
  }

  /** A call with one answer. */
  unary(name, method, request, signal) {
    return until(signal, (done) => this.#call("Unary", name, method, request, this.#metadata, done));
  }

  /** A call whose answer is a stream. */
  async *stream(name, method, request, signal) {
    signal.throwIfAborted();
    const call = this.#call("ServerStream", name, method, request, this.#metadata);
    try {
      yield* addAbortSignal(signal, call);
    } catch (error) {
      throw signal.aborted ? signal.reason : fromStatus(error);
    } finally {
      call.cancel();
    }
  }

  /** Stores the bytes of source, which is iterable, as one file. */
  putBlob(source, signal) {
    return until(signal, (done) => {
      const call = this.#call("ClientStream", "Blobs", "Put", this.#metadata, done);
      pipeline(Readable.from(source instanceof Uint8Array ? [source] : source), inChunks, call).catch((error) => {
        done(error);
        call.cancel(); // a file that was not read to its end is not stored
      });
      return call;
    });
  }

  /** Commits effects; one result for each. */
  commit(commit, signal) {
    return until(signal, (done) => {
      if (sizeOf(commit) > maxCommit) {
        throw new KernelError("too_large", `commit of ${commit.effects.length} effects: larger than 16 MiB`);
      }
      const stream = this.#stream ?? this.#open();
      this.#sent.push(done);
      stream.write({ commits: [commit] });
    });
  }

  #open() {
    const stream = this.#stream = this.#call("BidiStream", "Bus", "Commit", this.#metadata);
    stream.on("data", ({ receipts }) => {
      for (const { error, results } of receipts) this.#sent.shift()(error, results);
    });
    return stream.on("status", (status) => {
      this.#stream = undefined;
      const error = status.code ? fromStatus(status) : new KernelError("gone", "the kernel has closed the stream");
      const unconfirmed = new KernelError(error.code, `commit, sent but not confirmed: ${error.message}`, error);
      for (const done of this.#sent.splice(0)) done(unconfirmed);
      if (error.code === "gone" && !this.#closed) this.#lost();
    });
  }

  close() {
    this.#closed = true;
    this.#stream?.cancel();
    this.#client.close();
    this.#files.close();
  }
}

/** What begin calls done with, unless signal aborts before; then the call that begin returned is cancelled. */
async function until(signal, begin) {
  signal.throwIfAborted();
  let abort;
  try {
    return await new Promise((resolve, reject) => {
      const call = begin((error, value) => (error ? reject(fromStatus(error)) : resolve(value)));
      abort = () => {
        reject(signal.reason);
        call?.cancel();
      };
      signal.addEventListener("abort", abort);
    });
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function* inChunks(source) {
  for await (const bytes of source) {
    for (let at = 0; at < bytes.length; at += chunk) yield { data: bytes.subarray(at, at + chunk) };
  }
}
