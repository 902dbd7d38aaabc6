// One Deliver stream: deliveries come in, handlers run concurrently, and outcomes leave as
// soon as there are any. The kernel sends at most one delivery of a lane at a time.
import { setImmediate as immediate } from "node:timers/promises";
import { Drop, Retry, Unknown, effectsOf } from "./effects.js";
import { KernelError, ended, isShutdown, maxCommit, reasonOf, sizeOf } from "./wire.js";

const maxRunning = 1024; // then credit is given back when handlers end
const conflictPause = 20; // keeps handlers that race for one key from spinning

/**
 * Resolves when the stream has ended. After draining, or the kernel's end of the stream, it
 * takes no more deliveries and lets running handlers finish.
 */
export const deliver = (call, draining, handle) => new Promise((resolve) => {
  const active = new Map(); // AbortControllers by token
  let credit = maxRunning; // to give
  const ending = () => draining.aborted || call.readableEnded;
  const answer = (outcomes = []) => {
    if (call.cancelled || call.writableEnded) return;
    const given = active.size < maxRunning && !ending() ? credit : 0;
    if (given || outcomes.length) call.write({ outcomes, credit: given });
    credit -= given;
    if (ending() && !active.size) resolve(call.end());
  };
  const run = async (delivery) => {
    const { token, deadlineUs } = delivery;
    const controller = new AbortController();
    active.set(token, controller);
    const late = () => controller.abort(ended("the delivery has timed out", "TimeoutError"));
    const timer = deadlineUs && setTimeout(late, Math.min(Math.max(0, deadlineUs / 1000 - Date.now()), 2 ** 31 - 1));
    const outcome = await handle(delivery, controller).then(acknowledge).catch(outcomeOf);
    clearTimeout(timer);
    await immediate(); // what the handler left to throw beside it ends the process before its ack
    active.delete(token);
    answer([{ token, ...outcome }]);
  };
  const abandon = () => { // outcomes would be lost
    for (const controller of active.values()) controller.abort(ended("the connection to the kernel broke"));
    resolve(undefined);
  };
  call.on("data", ({ deliveries, cancels }) => {
    for (const token of cancels) active.get(token)?.abort(ended("the kernel has ended this delivery"));
    if (ending()) return;
    credit += deliveries.length;
    for (const delivery of deliveries) void run(delivery);
    answer();
  });
  call.on("end", () => answer()).on("error", abandon).on("cancelled", abandon);
  draining.addEventListener("abort", () => answer());
  answer();
});

/** The outcome of a handler that returned. Effects that can never be committed are dropped. */
function acknowledge(effects) {
  const outcome = { kind: "KIND_ACK", effects: effectsOf(effects) };
  if (sizeOf(outcome) <= maxCommit) return outcome;
  return { kind: "KIND_DROP", reason: `the ${outcome.effects.length} effects of the handler are larger than 16 MiB` };
}

/** The outcome of a handler that threw. */
function outcomeOf(error) {
  const reason = reasonOf(error);
  if (error instanceof Retry) return { kind: "KIND_RETRY", retryAfterMs: Math.max(0, Math.round(error.afterMs)), reason };
  if (error instanceof Drop) return { ...acknowledge(error.effects), kind: "KIND_DROP", reason };
  if (error instanceof Unknown) return { kind: "KIND_UNKNOWN", reason };
  if (isShutdown(error)) return { kind: "KIND_RETRY", reason };
  if (error instanceof KernelError && error.code === "conflict") {
    return { kind: "KIND_RETRY", retryAfterMs: conflictPause, reason };
  }
  return { kind: "KIND_FAIL", reason };
}
