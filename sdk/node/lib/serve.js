// The process of an extension: handshake, services, end.
import { writeSync } from "node:fs";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { Activation, within } from "./activation.js";
import { Log } from "./log.js";
import { KernelError, cookie, extension, options, toStatus } from "./wire.js";

const orphanTimeout = 30_000; // without an Init
const defaultGrace = 5000;
const goneGrace = 400; // nothing that is done without the kernel can be recorded
const closeDelay = 500; // for the answer to Shutdown, and for the kernel to end the process
const started = process.env.SWITCHBOARD_EXTENSION === cookie;

if (started) { // standard output belongs to the protocol: console.log goes to the log
  process.stdout.write = process.stderr.write.bind(process.stderr);
  process.stderr.on("error", () => {}); // the kernel has ended
}

export function serve(ext) {
  if (!started) {
    process.stderr.write("This program is a Switchboard extension. Put it beside its manifest.yaml, and Switchboard starts it.\n");
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
    setTimeout(() => this.#activation ?? this.close(0), orphanTimeout).unref();
  }

  #describe(tools) {
    const { channel, models, handle, results, handleAgent, id = "" } = this.#ext;
    const known = new Map();
    for (const tool of tools) {
      if (!tool.name || !tool.call) throw new Error(`extension ${id}: a tool needs a name and call: ${tool.name}`);
      if (known.has(tool.name)) throw new Error(`extension ${id}: two tools are named ${tool.name}`);
      known.set(tool.name, tool);
    }
    this.#tools = known;
    const schema = { type: "object", additionalProperties: false };
    return {
      channel: Boolean(channel), drafts: Boolean(channel?.draft), models: Boolean(models),
      events: Boolean(channel || handle || results || handleAgent), sdk: "node/0.1",
      tools: tools.map(({ call, say, ...t }) => ({ ...t, schema: Buffer.from(JSON.stringify(t.schema ?? schema)) })),
    };
  }

  /** Runs work after the Inits and Shutdowns before it. */
  #inTurn(work) {
    const now = this.#last.then(work);
    this.#last = now.catch(() => {});
    return now;
  }

  #init(request) {
    return this.#inTurn(async () => {
      if (this.#ext.id && request.id !== this.#ext.id) {
        throw new KernelError("invalid", `the manifest has the id "${request.id}", the program "${this.#ext.id}"`);
      }
      await this.#activation?.shutdown(1000); // the kernel missed an earlier answer
      this.#activation = undefined;
      const activation = new Activation(this.#ext, request, (tools) => (this.#description = this.#describe(tools)));
      await activation.start(() => void this.#gone(activation));
      this.#activation = activation;
      return { readiness: activation.announce() };
    });
  }

  /** The activation, for a request of the kernel. */
  #current() {
    if (!this.#activation) throw new KernelError("unavailable", "the extension is not initialized");
    return this.#activation;
  }

  async #shutdown({ graceMs }) {
    await this.#end(graceMs || defaultGrace);
    setTimeout(() => this.#activation ?? process.exit(0), closeDelay);
    return {};
  }

  #end(grace) {
    const ending = this.#activation;
    return this.#inTurn(async () => {
      await ending?.shutdown(grace);
      if (this.#activation === ending) this.#activation = undefined;
    });
  }

  async #gone(activation) {
    if (this.#activation !== activation) return;
    activation.interrupt();
    await this.close(goneGrace);
  }

  /** Ends the process after at most grace milliseconds. */
  async close(grace) {
    await within(grace + 100, this.#end(grace));
    process.exit(0);
  }

  listen(path) {
    const server = new grpc.Server(options);
    server.addService(extension.Extension.service, {
      Describe: unary(() => this.#description),
      Init: unary((request) => this.#init(request)),
      Health: unary(() => this.#activation?.readiness() ?? { state: "STATE_OFFLINE", detail: "the extension is not initialized" }),
      Shutdown: unary((request) => this.#shutdown(request)),
    });
    server.addService(extension.Events.service, {
      Deliver: (call) => {
        try {
          this.#current().deliver(call);
        } catch (error) {
          call.emit("error", toStatus(error));
        }
      },
    });
    server.addService(extension.Tools.service, {
      Call: unary((request, controller) => {
        const tool = this.#tools.get(request.name);
        if (!tool) throw new KernelError("not_found", `extension ${this.#ext.id ?? ""} has no tool "${request.name}"`);
        return this.#current().call(tool, request, controller);
      }),
    });
    if (this.#ext.models) server.addService(extension.Models.service, { Complete: (call) => void this.#complete(call) });
    if (this.#ext.channel?.draft) server.addService(extension.Drafts.service, { Draft: (call, done) => this.#draft(call, done) });
    server.addService(fixed("grpc.health.v1.Health", "Check", [8, 1]), { Check: (_, done) => done(null, {}) });
    server.addService(fixed("plugin.GRPCController", "Shutdown", []), {
      Shutdown: (_, done) => {
        done(null, {});
        setTimeout(() => process.exit(0), 50);
      },
    });
    server.bindAsync(`unix:${path}`, grpc.ServerCredentials.createInsecure(), (error) => {
      if (error) throw error;
      writeSync(1, `1|1|unix|${path}|grpc\n`);
    });
  }

  async #complete(call) {
    try {
      const write = (delta) => call.write(delta) || new Promise((resolve) => call.once("drain", resolve).once("cancelled", resolve));
      await this.#current().complete(call.request, write, controllerOf(call));
      call.end();
    } catch (error) {
      new Log(this.#ext.id).debug("model failed", { error });
      call.emit("error", toStatus(error));
    }
  }

  #draft(call, done) {
    const shown = new Map();
    call.on("data", (update) => this.#activation?.draft(shown, update));
    call.on("error", () => {});
    call.on("end", () => void Promise.all([...shown.values()].map((d) => d.work)).then(() => done(null, {})));
  }
}

/** An AbortController that follows the cancellation of a call. */
function controllerOf(call) {
  const controller = new AbortController();
  const canceled = Object.assign(new Error("the call was canceled"), { name: "AbortError" });
  call.on("cancelled", () => controller.abort(canceled));
  return controller;
}

/** The handler of a unary method. */
const unary = (handle) => async (call, done) => {
  try {
    done(null, await handle(call.request, controllerOf(call)));
  } catch (error) {
    done(toStatus(error));
  }
};

/** A service of go-plugin or gRPC with one method, whose answer is always the same. */
const fixed = (service, method, answer) => ({
  [method]: {
    path: `/${service}/${method}`, requestStream: false, responseStream: false,
    requestSerialize: () => Buffer.alloc(0), requestDeserialize: (bytes) => bytes,
    responseSerialize: () => Buffer.from(answer), responseDeserialize: (bytes) => bytes,
  },
});
