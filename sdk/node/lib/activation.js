// One run of an extension, from Init to Shutdown.
//
// At shutdown it takes no more work and interrupts the tools that allow it. Other handlers
// may finish during three quarters of the grace; then their signals abort. The last eighth
// is for stop.
import { setImmediate as immediate, setTimeout as sleep } from "node:timers/promises";
import { Drop, Ending, ToolResult, decode, draftOf, effectsOf, eventOf, messageOf, sees } from "./effects.js";
import { Kernel, Link } from "./kernel.js";
import { logOf } from "./log.js";
import { KernelError, ended, isShutdown, maxCommit, reasonOf, shuttingDown, sizeOf } from "./wire.js";

const maxRunning = 1024; // then credit is given back when handlers end

export class Activation {
  readiness = { state: "STATE_READY", detail: "" };
  #running = new Set(); // AbortControllers of handlers
  #draining = new AbortController();
  #background = new AbortController();
  #ran;

  constructor(ext, init, describe) {
    const { id, name, agent, runDir, dataDir, config, secrets, timezone } = init;
    Object.assign(this, { ext, id, log: logOf(id), link: new Link(init) });
    this.shared = {
      id, name, agent, runDir, dataDir, log: this.log, timezone: timezone || "UTC", draining: this.#draining.signal,
      config: config.length ? decode(config, "the configuration") : {},
      secret: (named) => secrets[named] ?? "",
      setReadiness: (state, detail = "") => this.#report({ state: `STATE_${state.toUpperCase()}`, detail }),
      setTools: (tools) => this.#report({ ...this.readiness, description: describe(tools) }),
    };
    this.kernel = this.#kernel("", this.#background.signal);
  }

  #kernel(lane, signal) { return new Kernel(this.shared, this.link, lane, signal); }

  get draining() { return this.#draining.signal.aborted; }

  /** Begins the background work, and reports changes of the readiness that it returns. */
  async start(lost) {
    await this.link.connect(lost);
    await this.ext.start?.(this.kernel);
    this.#ran = this.#keepRunning();
    return this.readiness;
  }

  async #keepRunning() {
    const { signal } = this.#background;
    await immediate(); // nothing is reported before the answer to Init
    for (let pause = 1000; this.ext.run && !signal.aborted; pause = Math.min(2 * pause, 60_000)) {
      try {
        return await this.ext.run(this.kernel);
      } catch (error) {
        if (signal.aborted) return;
        this.log.error("background work failed, restarting it after a pause", { error, pause });
        const before = this.readiness;
        void this.#report({ state: "STATE_OFFLINE", detail: reasonOf(error) });
        await sleep(pause, undefined, { signal }).catch(() => {});
        void this.#report(before);
      }
    }
  }

  async #report({ description, ...readiness }) {
    const same = !description && Object.keys(readiness).every((name) => readiness[name] === this.readiness[name]);
    this.readiness = readiness;
    if (same || !this.#ran) return;
    await this.kernel.rpc("Runtime", "Report", { ...readiness, description })
      .catch((error) => this.log.debug("report readiness", { error }));
  }

  /** Runs work with a kernel of its lane. */
  async #enter(lane, work, controller = new AbortController()) {
    this.#running.add(controller);
    try {
      return await work(this.#kernel(lane, controller.signal));
    } finally {
      this.#running.delete(controller);
    }
  }

  /** Handles the deliveries of a stream concurrently; the kernel sends one of a lane at a time. */
  deliver(call) {
    const active = new Map(); // AbortControllers by token
    let credit = maxRunning; // to give
    const answer = (...outcomes) => {
      const given = active.size < maxRunning ? credit : 0;
      credit -= given;
      if (!call.cancelled && (given || outcomes.length)) call.write({ outcomes, credit: given });
    };
    const abort = (token, error) => active.get(token)?.abort(error);
    const run = async (delivery) => {
      const { token, deadlineUs } = delivery;
      const controller = new AbortController();
      active.set(token, controller);
      const left = Math.min(Math.max(0, deadlineUs / 1000 - Date.now()), 2 ** 31 - 1);
      const timer = deadlineUs && setTimeout(abort, left, token, ended("the delivery has timed out", "TimeoutError"));
      await this.#enter(token, async (kernel) => {
        const outcome = await this.#dispatch(delivery, kernel).then(acknowledge).catch(outcomeOf);
        clearTimeout(timer);
        await immediate(); // what the handler left to throw beside it ends the process before its ack
        active.delete(token);
        answer({ token, ...outcome });
      }, controller);
    };
    call.on("data", ({ deliveries, cancels }) => {
      for (const token of cancels) abort(token, ended("the kernel has ended this delivery"));
      if (this.draining) return;
      credit += deliveries.length;
      for (const delivery of deliveries) void run(delivery);
      answer();
    });
    const abandon = () => [...active.keys()].forEach((token) => abort(token, ended("the connection to the kernel broke")));
    call.on("error", abandon).on("cancelled", abandon); // outcomes would be lost
    answer();
  }

  async #dispatch({ event, attempt, uncertain, token, turn, deadlineUs }, kernel) {
    const { ext, id } = this;
    const deadline = deadlineUs ? new Date(deadlineUs / 1000) : undefined;
    const delivery = { ...eventOf(event), attempt, uncertain, token, turn, deadline };
    const { topic, payload } = delivery;
    if (topic === `channel.send.${id}` && ext.channel) return this.#send(delivery, kernel);
    if (topic === `agent.input.${id}` && ext.handleAgent) return ext.handleAgent(delivery, kernel);
    const isResult = topic === `tool.result.${id}`;
    if (isResult && ext.results) return ext.results({ ...payload, isError: payload.error ?? false, event: delivery }, kernel);
    if (ext.handle) return ext.handle(delivery, kernel);
    if (!isResult) throw new Drop(`extension ${id} has no handler for topic ${topic}`);
  }

  async #send(delivery, kernel) {
    const { channel } = this.ext, message = messageOf(delivery);
    if (!message.text && !message.attachments.length && message.draftId) {
      const draft = { ...draftOf(message), done: true };
      await (channel.removeDraft ? channel.removeDraft(draft, kernel) : channel.draft?.(draft, kernel));
      return [];
    }
    const { id: providerId, conversation, thread, effects } = (await channel.send(message, kernel)) ?? {};
    return [{ receipt: { providerId, conversation, thread } }, ...effectsOf(effects)];
  }

  /** Answers a tool call. An error of the tool is a failed result, which the model sees. */
  async call(tool, r, controller) {
    const stop = () => controller.abort(shuttingDown);
    if (tool.interruptible || tool.waits) this.#draining.signal.addEventListener("abort", stop, { once: true });
    try {
      const args = r.arguments.length ? decode(r.arguments, "the arguments") : {};
      const about = { ...r, id: r.callId, timezone: r.timezone || this.shared.timezone, sees: (by) => sees(r.principal, by) };
      const given = await this.#enter(r.lane, (kernel) => tool.call(args, kernel, about), controller);
      const result = given instanceof ToolResult ? given : new ToolResult(given);
      const text = r.command && tool.say && !result.isError ? tool.say(result.content, r.language) : "";
      const out = { ...result, effects: effectsOf(result.effects), text };
      return sizeOf(out) > maxCommit ? failed(`result of ${tool.name} is larger than 16 MiB`) : out;
    } catch (error) {
      if (isShutdown(error)) throw new KernelError("gone", shuttingDown.message);
      if (controller.signal.aborted) throw new KernelError("canceled", reasonOf(error));
      if (isConflict(error)) throw error; // the kernel calls again
      this.log.debug("tool failed", { tool: tool.name, error });
      return failed(reasonOf(error));
    } finally {
      this.#draining.signal.removeEventListener("abort", stop);
    }
  }

  /** Shows the newest of the drafts that come; a channel that is slower than the model skips some. */
  async draft(updates) {
    let newest, shown, showing;
    const show = (kernel) => newest !== shown && this.ext.channel.draft(draftOf((shown = newest)), kernel);
    for await (newest of updates) {
      showing = Promise.resolve(showing).then(() => this.#enter("", show))
        .catch((error) => this.log.warn("show a draft", { error }));
    }
    await showing;
  }

  /** Aborts all handlers. */
  interrupt() { for (const controller of this.#running) controller.abort(shuttingDown); }

  /** Ends within grace milliseconds. */
  async shutdown(grace) {
    const deadline = Date.now() + grace;
    this.#draining.abort(shuttingDown);
    if (!(await this.#idle(grace * 3 / 4))) {
      this.interrupt();
      if (!(await this.#idle(grace / 8))) this.log.warn("handlers ignore the abort of their signal", { grace });
    }
    this.#background.abort(shuttingDown);
    await within(100, this.#ran);
    const kernel = this.#kernel("", AbortSignal.timeout(Math.max(1, deadline - Date.now())));
    const stopped = Promise.resolve().then(() => this.ext.stop?.(kernel));
    await within(deadline - Date.now(), stopped.catch((error) => this.log.warn("stop failed", { error })));
    this.link.close();
  }

  async #idle(ms) {
    for (const end = Date.now() + ms; this.#running.size; await sleep(5)) {
      if (Date.now() >= end) return false;
    }
    return true;
  }
}

const failed = (content) => ({ content, isError: true });
const isConflict = (error) => error instanceof KernelError && error.code === "conflict";

/** The outcome of a handler that returned. Effects that can never be committed are dropped. */
function acknowledge(returned) {
  const effects = effectsOf(returned);
  if (sizeOf(effects) <= maxCommit) return { kind: "KIND_ACK", effects };
  throw new Drop(`the ${effects.length} effects of the handler are larger than 16 MiB`);
}

/** The outcome of a handler that threw. */
function outcomeOf(error) {
  const { kind = "KIND_FAIL", retryAfterMs, effects } = error instanceof Ending ? error
    : isShutdown(error) || isConflict(error) ? { kind: "KIND_RETRY", retryAfterMs: 20 } : {};
  return { kind, retryAfterMs, effects, reason: reasonOf(error) };
}

/** Waits for a promise, at most ms milliseconds. */
export const within = (ms, promise) => Promise.race([promise, sleep(Math.max(0, ms), undefined, { ref: false })]);
