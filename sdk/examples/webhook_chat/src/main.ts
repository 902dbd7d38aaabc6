// A channel to a chat that calls a webhook for each message and has a REST API.
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { KernelError, serve, splitFiles, type Attachment, type Kernel } from "@switchboard-run/sdk";
import { connect, type Platform } from "./platform.js";
import { isSigned } from "./signature.js";

/** What the platform posts for each message. */
interface Hook {
  id: string;
  channel: string;
  direct: boolean;
  thread?: string;
  user: { id: string; name: string };
  text: string;
  files?: { id: string; name: string; mime: string; size: number }[];
}

const maxBody = 1 << 20;
const maxFile = 20 << 20;
let platform: Platform;

async function bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if ((size += chunk.length) > maxBody) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Reports a message. When it returns, message and files are on disk. */
async function receive(hook: Hook, kernel: Kernel): Promise<void> {
  const attachments: Attachment[] = [];
  for (const { id, name, mime, size } of hook.files ?? []) {
    const kind = ["image", "audio", "video"].find((k) => mime.startsWith(`${k}/`)) ?? "document";
    const blob = size > maxFile ? undefined : (await kernel.putBlob(await platform.download(id, kernel))).hash;
    attachments.push({ kind, name, mime, size, blob });
  }
  await kernel.receive({
    text: hook.text, userId: hook.user.id, userName: hook.user.name, group: !hook.direct,
    conversationId: hook.channel, threadId: hook.thread, messageId: hook.id, attachments,
  }, { dedupe: hook.id });
}

/** Answers a webhook. The platform repeats it until the answer is 200. */
async function answer(request: IncomingMessage, kernel: Kernel): Promise<number> {
  if (request.method !== "POST") return 405;
  const body = await bodyOf(request);
  if (!body) return 413;
  const header = (name: string) => String(request.headers[name] ?? "");
  const secret = kernel.secret("CHAT_SIGNING_SECRET");
  if (!isSigned(secret, header("x-chat-timestamp"), body, header("x-chat-signature"))) return 401;
  let hook: Hook;
  try {
    hook = JSON.parse(body.toString());
  } catch {
    return 400;
  }
  try {
    await receive(hook, kernel);
    return 200;
  } catch (error) {
    kernel.log.warn("a message was not received, and will be repeated", { id: hook.id, error });
    return error instanceof KernelError && error.code === "invalid" ? 400 : 503;
  }
}

serve({
  id: "webhook_chat",
  async start(kernel) {
    platform = connect(kernel.config.api_url, kernel.secret("CHAT_TOKEN"));
  },
  async run(kernel) {
    const server = createServer((request, response) => {
      answer(request, kernel).catch(() => 503).then((status) => response.writeHead(status).end());
    });
    const { signal } = kernel;
    server.listen({ port: kernel.config.port, host: "127.0.0.1", signal });
    await once(server, "listening", { signal });
    await once(server, "close");
  },
  channel: {
    async send(message, kernel) {
      const [files, rest] = splitFiles(message);
      const uploaded = [];
      for (const file of files) uploaded.push(await platform.upload(file, kernel));
      return { id: await platform.post(rest, uploaded, kernel) };
    },
  },
});
