// One run of an extension, from Init to Shutdown.
//
// At shutdown it takes no more work and interrupts the tools that allow it. Other handlers
// may finish during three quarters of the grace; then their signals abort. The last eighth
// is for stop.
import { setTimeout as sleep } from "node:timers/promises";
import { deliver } from "./deliveries.js";
import { Drop, ToolResult, decode, draftOf, effectsOf, eventOf, messageOf, sees } from "./effects.js";
import { Kernel } from "./kernel.js";
import { Link } from "./link.js";
import { logOf } from "./log.js";
import { KernelError, isShutdown, maxCommit, reasonOf, shuttingDown, sizeOf } from "./wire.js";

export class Activation {
  readiness = { state: "STATE_READY", detail: "" };
  #running = new Set(); // AbortControllers of handlers
  #streams = 0;
  #draining = new AbortController();
  #background = new AbortController();
  #reports;
  #ran;
  #ended;

  constructor(ext, init, describe) {
    const { id, name, agent, runDir, dataDir, config, secrets, timezone } = init;
    const log = logOf(id);
    this.link = new Link(init);
    this.shared = {
      id, name, agent, runDir, dataDir, log, timezone: timezone || "UTC", draining: this.#draining.signal,
      config: config.length ? decode(config, "the configuration") : {},
      secret: (named) => secrets[named] ?? "",
      setReadiness: (state, detail = "") => this.#set({ state: `STATE_${state.toUpperCase()}`, detail }),
      setTools: (tools) => this.#report({ ...this.readiness, description: describe(tools) }),
    };
    Object.assign(this, { ext, id, log });
    this.kernel = this.#kernel("", this.#background.signal);
  }

  #kernel(lane, signal) { return new Kernel(this.shared, this.link, lane, signal); }

  get draining() { return this.#draining.signal.aborted; }

  async start(lost) {
    try {
      await this.link.connect(lost);
      await this.ext.start?.(this.kernel);
    } catch (error) {
      await this.shutdown(0);
      throw error;
    }
  }

  /** Begins the background work, and reports changes of readiness from now on. */
  announce() {
    this.#reports = Promise.resolve();
    this.#ran = this.#keepRunning();
    return this.readiness;
  }

  async #keepRunning() {
    const { signal } = this.#background;
    for (let pause = 1000; this.ext.run && !signal.aborted; pause = Math.min(2 * pause, 60_000)) {
      try {
        return await this.ext.run(this.kernel);
      } catch (error) {
        if (signal.aborted) return;
        this.log.error("background work failed, restarting it after a pause", { error, pause });
        const before = this.readiness;
        void this.#set({ state: "STATE_OFFLINE", detail: reasonOf(error) });
        await sleep(pause, undefined, { signal }).catch(() => {});
        void this.#set(before);
      }
    }
  }

  async #set(next) {
    const { state, detail } = this.readiness;
    this.readiness = next;
    if (state !== next.state || detail !== next.detail) await this.#report(next);
  }

  #report(readiness) { // one after the other; nothing before the answer to Init
    this.#reports = this.#reports?.then(() => this.kernel.rpc("Runtime", "Report", readiness))
      .catch((error) => this.log.debug("report readiness", { error }));
    return this.#reports;
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

  async deliver(call) {
    this.#streams++;
    await deliver(call, this.#draining.signal, (delivery, controller) =>
      this.#enter(delivery.token, (kernel) => this.#dispatch(delivery, kernel), controller));
    this.#streams--;
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
    return undefined;
  }

  async #send(delivery, kernel) {
    const { channel } = this.ext;
    const message = messageOf(delivery);
    if (!message.text && !message.attachments.length && message.draftId) {
      const draft = { ...draftOf(message), done: true };
      await (channel.removeDraft ? channel.removeDraft(draft, kernel) : channel.draft?.(draft, kernel));
      return [];
    }
    const r = (await channel.send(message, kernel)) ?? {};
    const receipt = { providerId: r.id ?? "", conversation: r.conversation ?? message.conversation, thread: r.thread ?? message.thread };
    return [{ receipt }, ...effectsOf(r.effects)];
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
      if (error instanceof KernelError && error.code === "conflict") throw error; // the kernel calls again
      this.log.debug("tool failed", { tool: tool.name, error });
      return failed(reasonOf(error));
    } finally {
      this.#draining.signal.removeEventListener("abort", stop);
    }
  }

  /** Shows the updates of drafts; the newest one of each, if the channel is slower than the model. */
  async draft(updates) {
    const newest = new Map();
    const show = (key) => this.#enter("", async (kernel) => {
      for (let draft; (draft = newest.get(key)); newest.get(key) === draft && newest.delete(key)) {
        await Promise.resolve(this.ext.channel.draft(draft, kernel))
          .catch((error) => this.log.warn("show a draft", { error }));
      }
    });
    const shown = [];
    for await (const update of updates) {
      const key = JSON.stringify([update.conversation, update.thread, update.draftId]);
      const busy = newest.has(key);
      newest.set(key, draftOf(update));
      if (!busy) shown.push(show(key));
    }
    await Promise.all(shown);
  }

  /** Aborts all handlers. */
  interrupt() {
    for (const controller of this.#running) controller.abort(shuttingDown);
  }

  /** Ends within grace milliseconds. A second call waits for the first. */
  shutdown(grace) {
    return (this.#ended ??= this.#shutdown(grace));
  }

  async #shutdown(grace) {
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
    for (const end = Date.now() + ms; this.#running.size || this.#streams; await sleep(5)) {
      if (Date.now() >= end) return false;
    }
    return true;
  }
}

const failed = (content) => ({ content, isError: true });

/** Waits for a promise, at most ms milliseconds. */
export const within = (ms, promise) => {
  const timer = new AbortController();
  return Promise.race([promise, sleep(Math.max(0, ms), undefined, timer).catch(() => {})]).finally(() => timer.abort());
};
