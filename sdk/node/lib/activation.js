// One run of an extension, from Init to Shutdown.
//
// At shutdown it takes no more work and interrupts the tools that allow it. Other handlers
// may finish during three quarters of the grace; then their signals abort. The last eighth
// is for stop.
import { setTimeout as sleep } from "node:timers/promises";
import { Deliveries } from "./deliveries.js";
import { Drop, ToolResult, effectsOf, messageOf, eventOf, sees } from "./effects.js";
import { Kernel } from "./kernel.js";
import { Link } from "./link.js";
import { Log } from "./log.js";
import { KernelError, maxCommit, reasonOf, sizeOf } from "./wire.js";

const abortError = (message) => Object.assign(new Error(message), { name: "AbortError" });
export const broken = abortError("the connection to the kernel broke");
const shuttingDown = abortError("the extension is shutting down");

/** Whether error is what the abort of a signal makes a handler throw. */
const isShutdown = (error) => error === shuttingDown || error?.cause === shuttingDown;

export class Activation {
  link;
  draining = new AbortController();
  #running = new Set(); // AbortControllers of handlers
  #streams = new Set();
  #background = new AbortController();
  #readiness = { state: "STATE_READY", detail: "" };
  #reports;
  #ran;
  #ended;

  constructor(ext, init, describe) {
    Object.assign(this, { ext, init, describe });
    this.log = new Log(init.id);
    this.config = init.config.length ? JSON.parse(init.config.toString()) : {};
    this.link = new Link(init);
    this.kernel = new Kernel(this, "", this.#background.signal);
  }

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
    return this.readiness();
  }

  readiness() { return this.#readiness; }

  async #keepRunning() {
    const { signal } = this.#background;
    for (let pause = 1000; this.ext.run; pause = Math.min(2 * pause, 60_000)) {
      try {
        return await this.ext.run(this.kernel);
      } catch (error) {
        if (signal.aborted) return;
        this.log.error("background work failed, restarting it after a pause", { error, pause });
        const before = this.#readiness;
        void this.#set({ state: "STATE_OFFLINE", detail: reasonOf(error) });
        await sleep(pause, undefined, { signal }).catch(() => {});
        if (signal.aborted) return;
        void this.#set(before);
      }
    }
  }

  setReadiness(state, detail) { return this.#set({ state: `STATE_${state.toUpperCase()}`, detail }); }

  async #set(next) {
    const { state, detail } = this.#readiness;
    this.#readiness = next;
    if (state !== next.state || detail !== next.detail) await this.#report(next);
  }

  setTools(tools) { return this.#report({ ...this.#readiness, description: this.describe(tools) }); }

  #report(readiness) { // one after the other; nothing before the answer to Init
    this.#reports = this.#reports?.then(() => this.kernel.rpc("Runtime", "Report", readiness))
      .catch((error) => this.log.debug("report readiness", { error }));
    return this.#reports;
  }

  /** Runs work with a kernel of its lane; until aborts on more. */
  async #enter(lane, work, controller = new AbortController()) {
    this.#running.add(controller);
    try {
      return await work(new Kernel(this, lane, controller.signal));
    } finally {
      this.#running.delete(controller);
    }
  }

  refuseIfDraining() {
    if (this.draining.signal.aborted) throw new KernelError("unavailable", "the extension is shutting down");
  }

  deliver(call) {
    this.refuseIfDraining();
    const stream = new Deliveries(call, (delivery, controller) =>
      this.#enter(delivery.token, (kernel) => this.#dispatch(delivery, kernel), controller), isShutdown);
    this.#streams.add(stream);
    void stream.done.then(() => this.#streams.delete(stream));
  }

  async #dispatch(d, kernel) {
    const { ext, init } = this;
    const delivery = {
      ...eventOf(d.event), attempt: d.attempt, uncertain: d.uncertain, token: d.token, turn: d.turn,
      deadline: d.deadlineUs ? new Date(d.deadlineUs / 1000) : undefined,
    };
    const { topic, payload } = delivery;
    if (topic === `channel.send.${init.id}` && ext.channel) return this.#send(delivery, kernel);
    if (topic === `agent.input.${init.id}` && ext.handleAgent) return ext.handleAgent(delivery, kernel);
    const isResult = topic === `tool.result.${init.id}`;
    if (isResult && ext.results) return ext.results({ ...payload, isError: payload.error ?? false, event: delivery }, kernel);
    if (ext.handle) return ext.handle(delivery, kernel);
    if (!isResult) throw new Drop(`extension ${init.id} has no handler for topic ${topic}`);
    return undefined;
  }

  async #send(delivery, kernel) {
    const { channel } = this.ext;
    const message = messageOf(delivery);
    if (!message.text && !message.attachments.length && message.draftId) {
      const { conversation, thread, draftId: id } = message;
      const draft = { conversation, thread, id, replyTo: "", text: "", done: true };
      await (channel.removeDraft ? channel.removeDraft(draft, kernel) : channel.draft?.(draft, kernel));
      return [];
    }
    const r = (await channel.send(message, kernel)) ?? {};
    const receipt = { providerId: r.id ?? "", conversation: r.conversation ?? message.conversation, thread: r.thread ?? message.thread };
    return [{ receipt }, ...effectsOf(r.effects)];
  }

  /** Answers a tool call. An error of the tool is a failed result, which the model sees. */
  async call(tool, r, controller) {
    this.refuseIfDraining();
    let args;
    try {
      args = r.arguments.length ? JSON.parse(r.arguments.toString()) : {};
    } catch {
      return failed("the arguments are not valid JSON");
    }
    const stop = () => controller.abort(shuttingDown);
    if (tool.interruptible || tool.waits) this.draining.signal.addEventListener("abort", stop, { once: true });
    const about = { ...r, id: r.callId, timezone: r.timezone || this.kernel.timezone, sees: (by) => sees(r.principal, by) };
    try {
      const given = await this.#enter(r.lane, (kernel) => tool.call(args, kernel, about), controller);
      const result = given instanceof ToolResult ? given : new ToolResult(given);
      const said = r.command && tool.say && !result.isError;
      const out = { ...result, effects: effectsOf(result.effects), text: said ? tool.say(result.content, r.language) : "" };
      return sizeOf(out) > maxCommit ? failed(`result of ${tool.name} is larger than 16 MiB`) : out;
    } catch (error) {
      if (isShutdown(error)) throw new KernelError("gone", shuttingDown.message);
      if (controller.signal.aborted) throw new KernelError("canceled", reasonOf(error));
      if (error instanceof KernelError && error.code === "conflict") throw error; // the kernel calls again
      this.log.debug("tool failed", { tool: tool.name, error });
      return failed(reasonOf(error));
    } finally {
      this.draining.signal.removeEventListener("abort", stop);
    }
  }

  async complete(request, write, controller) {
    this.refuseIfDraining();
    const model = `${this.init.id}/${request.model}`;
    await this.#enter("", async (kernel) => {
      let first = true;
      for await (const delta of this.ext.models.complete(request, kernel)) {
        await write(first ? { model, ...delta } : delta);
        first = false;
      }
    }, controller);
  }

  /** Shows one update of a draft; the newest one, if the channel is slower than the model. */
  draft(shown, u) {
    const key = JSON.stringify([u.conversation, u.thread, u.draftId]);
    const { conversation, thread, replyTo, text, done, draftId: id } = u;
    const draft = { conversation, thread, id, replyTo, text, done };
    if (shown.has(key)) return void (shown.get(key).next = draft);
    const entry = { next: draft, work: undefined };
    shown.set(key, entry);
    entry.work = this.#enter("", async (kernel) => {
      while (entry.next) {
        const next = entry.next;
        entry.next = undefined;
        await Promise.resolve(this.ext.channel.draft(next, kernel))
          .catch((error) => this.log.warn("show a draft", { error }));
      }
      shown.delete(key);
    });
  }

  /** Aborts all handlers. */
  interrupt(reason = shuttingDown) {
    for (const controller of this.#running) controller.abort(reason);
  }

  /** Ends within grace milliseconds. A second call waits for the first. */
  shutdown(grace) {
    return (this.#ended ??= this.#shutdown(grace));
  }

  async #shutdown(grace) {
    const deadline = Date.now() + grace;
    this.draining.abort(shuttingDown);
    for (const stream of this.#streams) stream.end();
    if (!(await this.#idle(grace * 3 / 4))) {
      this.interrupt();
      if (!(await this.#idle(grace / 8))) this.log.warn("handlers ignore the abort of their signal", { grace });
    }
    this.interrupt();
    this.#background.abort(shuttingDown);
    await within(100, this.#ran);
    const kernel = new Kernel(this, "", AbortSignal.timeout(Math.max(1, deadline - Date.now())));
    const stopped = Promise.resolve().then(() => this.ext.stop?.(kernel));
    await within(deadline - Date.now(), stopped.catch((error) => this.log.warn("stop failed", { error })));
    this.link.close();
  }

  async #idle(ms) {
    for (const end = Date.now() + ms; this.#running.size || this.#streams.size; await sleep(5)) {
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
