// The process of an extension: handshake, services, end.
import { writeSync } from "node:fs";
import { join } from "node:path";
import grpc from "@grpc/grpc-js";
import { Activation, within } from "./activation.js";
import { KernelError, cookie, ended, options, service, toStatus } from "./wire.js";

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
    const { channel, handle, results, handleAgent, id = "" } = this.#ext;
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
    if (this.#tools.size < tools.length || tools.some((tool) => !tool.name || !tool.call)) {
      throw new Error(`extension ${id}: each tool needs a name of its own and call: ${tools.map((tool) => tool.name)}`);
    }
    const schema = { type: "object", additionalProperties: false };
    return {
      channel: Boolean(channel), drafts: Boolean(channel?.draft),
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
      await activation.start(() => {
        if (this.#activation !== activation) return;
        activation.interrupt();
        void this.close(goneGrace);
      });
      this.#activation = activation;
      return { readiness: activation.announce() };
    });
  }

  /** The activation, for work that the kernel brings. */
  #current() {
    if (!this.#activation || this.#activation.draining) {
      throw new KernelError("unavailable", `the extension is ${this.#activation ? "shutting down" : "not initialized"}`);
    }
    return this.#activation;
  }

  #end(grace) {
    const ending = this.#activation;
    return this.#inTurn(async () => {
      await ending?.shutdown(grace);
      if (this.#activation === ending) this.#activation = undefined;
    });
  }

  /** Ends the process after at most grace milliseconds. */
  async close(grace) {
    await within(grace + 100, this.#end(grace));
    process.exit(0);
  }

  listen(path) {
    const server = new grpc.Server(options);
    const add = (name, methods) => server.addService(service(name), methods);
    add("switchboard.extension.v1.Extension", {
      Describe: unary(() => this.#description),
      Init: unary((request) => this.#init(request)),
      Health: unary(() => this.#activation?.readiness ?? { state: "STATE_OFFLINE", detail: "the extension is not initialized" }),
      Shutdown: unary(async ({ graceMs }) => {
        await this.#end(graceMs || defaultGrace);
        setTimeout(() => this.#activation ?? process.exit(0), closeDelay);
      }),
    });
    add("switchboard.extension.v1.Events", {
      Deliver: (call) => {
        try {
          void this.#current().deliver(call);
        } catch (error) {
          call.emit("error", toStatus(error));
        }
      },
    });
    add("switchboard.extension.v1.Tools", {
      Call: unary((request, controller) => {
        const tool = this.#tools.get(request.name);
        if (!tool) throw new KernelError("not_found", `extension ${this.#ext.id ?? ""} has no tool "${request.name}"`);
        return this.#current().call(tool, request, controller);
      }),
    });
    if (this.#ext.channel?.draft) {
      add("switchboard.extension.v1.Drafts", { Draft: unary((_, __, updates) => this.#current().draft(updates)) });
    }
    add("grpc.health.v1.Health", { Check: unary(() => ({ status: "SERVING" })) });
    add("plugin.GRPCController", { Shutdown: unary(() => void setTimeout(() => process.exit(0), 50)) });
    server.bindAsync(`unix:${path}`, grpc.ServerCredentials.createInsecure(), (error) => {
      if (error) throw error;
      writeSync(1, `1|1|unix|${path}|grpc\n`);
    });
  }
}

/** An AbortController that follows the cancellation of a call. */
function controllerOf(call) {
  const controller = new AbortController();
  call.on("cancelled", () => controller.abort(ended("the call was canceled")));
  return controller;
}

/** A method with one answer. */
const unary = (handle) => async (call, done) => {
  try {
    done(null, (await handle(call.request, controllerOf(call), call)) ?? {});
  } catch (error) {
    done(toStatus(error));
  }
};
