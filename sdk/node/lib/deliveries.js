// One Deliver stream: deliveries come in, handlers run concurrently, and outcomes leave in
// frames. The kernel sends at most one delivery of a lane at a time.
import { Drop, Retry, Unknown, effectsOf } from "./effects.js";
import { KernelError, frames, maxCommit, reasonOf, sizeOf } from "./wire.js";

const maxRunning = 1024;
const conflictPause = 20; // keeps handlers that race for one key from spinning

export class Deliveries {
  #call;
  #handle;
  #isShutdown;
  #queue = [];
  #active = new Map(); // AbortControllers by token
  #outcomes = [];
  #credit = maxRunning;
  #scheduled = false;
  #ending = false;
  #resolve;
  done = new Promise((resolve) => { this.#resolve = resolve; });

  constructor(call, handle, isShutdown) {
    this.#call = call;
    this.#handle = handle;
    this.#isShutdown = isShutdown;
    call.on("data", (frame) => this.#take(frame));
    call.on("end", () => this.end());
    call.on("error", () => this.#abandon());
    call.on("cancelled", () => this.#abandon());
    this.#schedule();
  }

  #take({ deliveries, cancels }) {
    if (!this.#ending) this.#queue.push(...deliveries);
    for (const token of cancels) {
      const ended = Object.assign(new Error("the kernel has ended this delivery"), { name: "AbortError" });
      this.#active.get(token)?.abort(ended);
      const waits = this.#queue.findIndex((d) => d.token === token);
      if (waits < 0) continue;
      this.#queue.splice(waits, 1);
      this.#credit++;
      this.#answer({ token, kind: "KIND_RETRY", reason: ended.message });
    }
    this.#work();
  }

  #work() {
    while (this.#queue.length && this.#active.size < maxRunning) {
      this.#credit++;
      void this.#run(this.#queue.shift());
    }
    this.#schedule();
  }

  async #run(delivery) {
    const { token, deadlineUs } = delivery;
    const controller = new AbortController();
    this.#active.set(token, controller);
    const late = () => controller.abort(Object.assign(new Error("the delivery has timed out"), { name: "TimeoutError" }));
    const timer = deadlineUs && setTimeout(late, Math.min(Math.max(0, deadlineUs / 1000 - Date.now()), 2 ** 31 - 1));
    let outcome;
    try {
      outcome = acknowledge(await this.#handle(delivery, controller));
    } catch (error) {
      outcome = this.#outcomeOf(error);
    }
    if (timer) clearTimeout(timer);
    this.#active.delete(token);
    this.#answer({ token, ...outcome });
    this.#work();
  }

  #outcomeOf(error) {
    const reason = reasonOf(error);
    if (error instanceof Retry) return { kind: "KIND_RETRY", retryAfterMs: Math.max(0, Math.round(error.afterMs)), reason };
    if (error instanceof Drop) return { ...acknowledge(error.effects), kind: "KIND_DROP", reason };
    if (error instanceof Unknown) return { kind: "KIND_UNKNOWN", reason };
    if (this.#isShutdown(error)) return { kind: "KIND_RETRY", reason };
    if (error instanceof KernelError && error.code === "conflict") {
      return { kind: "KIND_RETRY", retryAfterMs: conflictPause, reason };
    }
    return { kind: "KIND_FAIL", reason };
  }

  #answer(outcome) {
    this.#outcomes.push(outcome);
    this.#schedule();
  }

  #schedule() { // so that handlers which finish now share a frame
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush() {
    this.#scheduled = false;
    if (this.#call.cancelled || this.#call.writableEnded) return;
    const outcomes = this.#outcomes;
    this.#outcomes = [];
    for (const some of frames(outcomes, sizeOf)) {
      this.#call.write({ outcomes: some, credit: this.#credit });
      this.#credit = 0;
    }
    if (this.#credit && !this.#ending) {
      this.#call.write({ outcomes: [], credit: this.#credit });
      this.#credit = 0;
    }
    if (this.#ending && !this.#active.size) {
      this.#call.end();
      this.#resolve(undefined);
    }
  }

  /** Takes no more deliveries, and lets running handlers finish. */
  end() {
    this.#ending = true;
    this.#queue = [];
    this.#schedule();
  }

  /** The stream broke: outcomes would be lost. */
  #abandon() {
    this.#ending = true;
    this.#queue = [];
    const reason = Object.assign(new Error("the connection to the kernel broke"), { name: "AbortError" });
    for (const controller of this.#active.values()) controller.abort(reason);
    this.#resolve(undefined);
  }
}

/** The outcome of a handler that returned. Effects that can never be committed are dropped. */
function acknowledge(effects) {
  const outcome = { kind: "KIND_ACK", effects: effectsOf(effects) };
  if (sizeOf(outcome) <= maxCommit) return outcome;
  return { kind: "KIND_DROP", reason: `the ${outcome.effects.length} effects of the handler are larger than 16 MiB` };
}
