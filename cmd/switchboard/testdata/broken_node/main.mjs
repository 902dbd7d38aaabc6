// An extension that makes one mistake that is usual in Node, which its first argument names.
import { existsSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Drop, publish, serve, tool } from "@switchboard-run/sdk";

const mode = process.argv[2];

switch (mode) {
  case "greets":
    writeSync(1, "listening\n");
    break;
  case "forgets a package":
    await import("left-pad-of-the-moon");
    break;
  case "writes to the descriptor":
    setInterval(() => writeSync(1, "tick\n"), 50);
    break;
  case "stays":
    process.exit = () => {};
    setInterval(() => {}, 1000);
    break;
}

const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

serve({
  id: "broken_node",
  start(kernel) {
    if (mode !== "locks") return;
    const lock = join(kernel.dataDir, "lock");
    if (existsSync(lock)) throw new Error("the file lock exists: is another one running?");
    writeFileSync(lock, "");
    process.on("exit", () => rmSync(lock)); // but not when it is killed
  },
  async handle(delivery) {
    if (delivery.topic !== "broken.go") throw new Drop("not for me");
    switch (mode) {
      case "throws beside the handler":
        setImmediate(() => delivery.payload.order.customer.name); // it may have none
        break;
      case "computes":
        sleep(9_000);
        break;
      case "publishes what it may not":
        return [publish("other.done", {})];
    }
    return [];
  },
  tools: [
    tool({
      name: "look",
      description: "Look.",
      schema: { type: "object", properties: {} },
      call: () => (mode === "never answers" ? new Promise(() => {}) : { text: "done" }),
    }),
  ],
});
