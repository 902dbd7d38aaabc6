// One activation's connection to the kernel.
import grpc from "@grpc/grpc-js";
import { KernelError, frames, fromStatus, kernel, maxCommit, options, sizeOf } from "./wire.js";

const { READY, SHUTDOWN, TRANSIENT_FAILURE } = grpc.connectivityState;

export class Link {
  #init;
  #clients = new Map();
  #metadata = new grpc.Metadata();
  #stream; // of commits
  #sent = []; // commits without a receipt, in their order
  #waiting = [];
  closed = false;

  constructor(init) {
    this.#init = init;
    this.#metadata.set("switchboard-token", init.kernelToken);
  }

  /** Resolves when the kernel answers; calls lost when an established connection breaks. */
  connect(lost) {
    const channel = this.client("Bus").getChannel();
    const watch = (resolve, reject, wasReady) => {
      const state = channel.getConnectivityState(!wasReady);
      if (this.closed || state === SHUTDOWN) return;
      if (wasReady && state !== READY) return void lost();
      if (state === TRANSIENT_FAILURE) {
        return void reject(new KernelError("gone", `connect to the kernel at ${this.#init.kernelAddress}`));
      }
      if (state === READY) resolve();
      channel.watchConnectivityState(state, Infinity, () => watch(resolve, reject, state === READY));
    };
    return new Promise((resolve, reject) => watch(resolve, reject, false));
  }

  /** A client of one of the kernel's services. Files flow on a connection of their own. */
  client(service) {
    if (this.closed) throw new KernelError("gone", "the extension has shut down");
    let client = this.#clients.get(service);
    if (!client) {
      const own = service === "Blobs" ? { "grpc.use_local_subchannel_pool": 1 } : {};
      const channelOverride = service === "Blobs" || service === "Bus" ? undefined : this.client("Bus").getChannel();
      client = new kernel[service](this.#init.kernelAddress, grpc.credentials.createInsecure(),
        { ...options, ...own, channelOverride });
      this.#clients.set(service, client);
    }
    return client;
  }

  /** A call with one answer. */
  unary(service, method, request, signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const call = this.client(service)[method](request, this.#metadata, (error, reply) => {
        signal.removeEventListener("abort", cancel);
        if (error) reject(signal.aborted ? signal.reason : fromStatus(error, error));
        else resolve(reply);
      });
      const cancel = () => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
    });
  }

  /** A call whose answer is a stream. */
  async *stream(service, method, request, signal) {
    signal.throwIfAborted();
    const call = this.client(service)[method](request, this.#metadata);
    const cancel = () => call.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    call.on("error", () => {}); // also after the end of the loop
    try {
      for await (const message of call) yield message;
    } catch (error) {
      throw signal.aborted ? signal.reason : typeof error.code === "number" ? fromStatus(error, error) : error;
    } finally {
      signal.removeEventListener("abort", cancel);
      call.cancel();
    }
  }

  /** Stores the bytes of source, which is iterable, as one file. */
  putBlob(source, signal) {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const call = this.client("Blobs").Put(this.#metadata, (error, blob) => {
        signal.removeEventListener("abort", cancel);
        if (error) reject(signal.aborted ? signal.reason : fromStatus(error, error));
        else resolve(blob);
      });
      const cancel = () => call.cancel();
      signal.addEventListener("abort", cancel, { once: true });
      call.on("error", () => {});
      (async () => {
        for await (const bytes of source instanceof Uint8Array ? [source] : source) {
          for (let at = 0; at < bytes.length; at += 256 << 10) {
            if (call.destroyed || call.writableEnded) return;
            const data = bytes.subarray(at, at + (256 << 10));
            if (!call.write({ data })) await drained(call);
          }
        }
        call.end();
      })().catch((error) => {
        reject(error);
        call.cancel(); // a file that was not read to its end is not stored
      });
    });
  }

  /** Commits effects; one result for each. */
  commit(commit, signal) {
    signal.throwIfAborted();
    if (sizeOf(commit) > maxCommit) {
      throw new KernelError("too_large", `commit of ${commit.effects.length} effects: larger than 16 MiB`);
    }
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason);
      signal.addEventListener("abort", abort, { once: true });
      const settle = (done) => (value) => {
        signal.removeEventListener("abort", abort);
        done(value);
      };
      if (this.#waiting.push({ commit, resolve: settle(resolve), reject: settle(reject) }) === 1) {
        setImmediate(() => this.#flush());
      }
    });
  }

  #flush() {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const stream = (this.#stream ??= this.#open());
      this.#sent.push(...waiting);
      for (const some of frames(waiting, (w) => sizeOf(w.commit))) stream.write({ commits: some.map((w) => w.commit) });
    } catch (error) {
      for (const w of waiting) w.reject(error);
    }
  }

  #open() {
    const stream = this.client("Bus").Commit(this.#metadata);
    stream.on("data", ({ receipts }) => {
      for (const receipt of receipts) {
        const sent = this.#sent.shift();
        if (receipt.error) sent.reject(fromStatus(receipt.error));
        else sent.resolve(receipt.results);
      }
    });
    const fail = (error) => {
      if (this.#stream !== stream) return;
      this.#stream = undefined;
      for (const sent of this.#sent.splice(0)) {
        sent.reject(new KernelError(error.code, `commit, sent but not confirmed: ${error.message}`, error));
      }
    };
    stream.on("error", (error) => fail(fromStatus(error, error)));
    stream.on("end", () => fail(new KernelError("gone", "the kernel has closed the stream")));
    return stream;
  }

  close() {
    this.closed = true;
    for (const client of this.#clients.values()) client.close();
    this.#stream?.cancel();
  }
}

/** Waits until a stream takes more, or ends. */
const drained = (stream) => new Promise((resolve) => {
  for (const event of ["drain", "close", "error", "finish"]) stream.once(event, resolve);
});
