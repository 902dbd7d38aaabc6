// The process of an extension: handshake, services, end.
import { writeSync } from "node:fs";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { Activation, within } from "./activation.js";
import { KernelError, cookie, ended, options, service, toStatus } from "./wire.js";

const defaultGrace = 5000;
const noArguments = { type: "object", additionalProperties: false };
const started = process.env.SWITCHBOARD_EXTENSION === cookie;

if (started) { // standard output belongs to the protocol: console.log goes to the log
  process.stdout.write = process.stderr.write.bind(process.stderr);
  process.stderr.on("error", () => {}); // the kernel has ended
}

export function serve(ext) {
  if (!started || process.env.PLUGIN_CLIENT_CERT) {
    process.stderr.write(started ? "The kernel asks for TLS (go-plugin's AutoMTLS), which the Node SDK does not speak.\n"
      : "This program is a Switchboard extension. Put it beside its manifest.yaml, and Switchboard starts it.\n");
    process.exit(1);
  }
  const server = new Server(ext);
  process.on("SIGTERM", () => void server.close(defaultGrace));
  process.on("SIGINT", () => {}); // of a terminal: the kernel decides
  server.listen(join(process.env.PLUGIN_UNIX_SOCKET_DIR || process.env.TMPDIR || "/tmp", `n${process.pid}`));
}

class Server {
  #ext;
  #tools = new Map();
  #description;
  #activation;
  #last = Promise.resolve(); // one Init or Shutdown at a time

  constructor(ext) {
    this.#ext = ext;
    this.#description = this.#describe(ext.tools ?? []);
    setTimeout(() => this.#activation ?? this.close(0), 30_000).unref(); // without an Init the kernel has ended
  }

  #describe(tools) {
    const { channel, handle, results, handleAgent, id = "" } = this.#ext;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    if (this.#tools.size < tools.length || tools.some((tool) => !tool.name || !tool.call)) {
      throw new Error(`extension ${id}: each tool needs a name of its own and call: ${tools.map((tool) => tool.name)}`);
    }
    return {
      channel: Boolean(channel), drafts: Boolean(channel?.draft),
      events: Boolean(channel || handle || results || handleAgent), sdk: "node/0.1",
      tools: tools.map(({ call, say, schema = noArguments, ...t }) => ({ ...t, schema: Buffer.from(JSON.stringify(schema)) })),
    };
  }

  /** Runs work after the Inits and Shutdowns before it. */
  #inTurn(work) {
    const now = this.#last.then(work);
    this.#last = now.catch(() => {});
    return now;
  }

  async #init(request) {
    if (this.#ext.id && request.id !== this.#ext.id) {
      throw new KernelError("invalid", `the manifest has the id "${request.id}", the program "${this.#ext.id}"`);
    }
    await this.#end(1000); // the kernel missed an earlier answer
    const activation = new Activation(this.#ext, request, (tools) => (this.#description = this.#describe(tools)));
    const readiness = await activation.start(() => {
      if (this.#activation !== activation) return;
      activation.interrupt(); // nothing that is done without the kernel can be recorded
      void this.close(400);
    });
    this.#activation = activation;
    return { readiness };
  }

  /** The activation, for work that the kernel brings. */
  #current() {
    if (this.#activation && !this.#activation.draining) return this.#activation;
    throw new KernelError("unavailable", "the extension is not running");
  }

  async #end(grace) {
    await this.#activation?.shutdown(grace);
    this.#activation = undefined;
  }

  /** Ends the process after at most grace milliseconds. */
  async close(grace) {
    await within(grace + 100, this.#inTurn(() => this.#end(grace)));
    process.exit(0);
  }

  #call(request, controller) {
    const tool = this.#tools.get(request.name);
    if (!tool) throw new KernelError("not_found", `extension ${this.#ext.id ?? ""} has no tool "${request.name}"`);
    return this.#current().call(tool, request, controller);
  }

  listen(path) {
    const server = new grpc.Server(options);
    const services = {
      "switchboard.extension.v1.Extension": {
        Describe: unary(() => this.#description),
        Init: unary((request) => this.#inTurn(() => this.#init(request))),
        Health: unary(() => this.#activation?.readiness ?? { state: "STATE_OFFLINE", detail: "not initialized" }),
        Shutdown: unary(async ({ graceMs }) => {
          await this.#inTurn(() => this.#end(graceMs || defaultGrace));
          setTimeout(() => this.#activation ?? process.exit(0), 500); // unless the kernel ends it, or starts it again
        }),
      },
      "switchboard.extension.v1.Events": {
        Deliver: (call) => void Promise.resolve().then(() => this.#current().deliver(call))
          .catch((error) => call.emit("error", toStatus(error))),
      },
      "switchboard.extension.v1.Tools": { Call: unary((request, controller) => this.#call(request, controller)) },
      "switchboard.extension.v1.Drafts": { Draft: unary((_, __, updates) => this.#current().draft(updates)) },
      "grpc.health.v1.Health": { Check: unary(() => ({ status: "SERVING" })) },
      "plugin.GRPCController": { Shutdown: unary(() => void setTimeout(() => process.exit(0), 50)) },
    };
    for (const [name, methods] of Object.entries(services)) server.addService(service(name), methods);
    server.bindAsync(`unix:${path}`, grpc.ServerCredentials.createInsecure(), (error) => {
      if (error) throw error;
      writeSync(1, `1|1|unix|${path}|grpc\n`);
    });
  }
}

/** A method with one answer, whose controller follows the cancellation of the call. */
const unary = (handle) => async (call, done) => {
  const controller = new AbortController();
  call.on("cancelled", () => controller.abort(ended("the call was canceled")));
  try {
    done(null, (await handle(call.request, controller, call)) ?? {});
  } catch (error) {
    done(toStatus(error));
  }
};
