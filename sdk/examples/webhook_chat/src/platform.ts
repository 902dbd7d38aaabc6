// The REST API of the chat.
import { Drop, Retry, type Attachment, type Kernel, type Message } from "@switchboard-run/sdk";

export interface Platform {
  /** Posts a message once: the platform shows a key only once. Returns its id. */
  post(message: Message, files: string[], kernel: Kernel): Promise<string>;
  upload(file: Attachment, kernel: Kernel): Promise<string>;
  download(id: string, kernel: Kernel): Promise<AsyncIterable<Uint8Array>>;
}

export function connect(url: string, token: string): Platform {
  const request = async (path: string, init: RequestInit, kernel: Kernel): Promise<Response> => {
    const headers = { ...init.headers, authorization: `Bearer ${token}` };
    const response = await fetch(new URL(path, url), { ...init, headers, signal: kernel.signal });
    if (response.ok) return response;
    const why = `${path}: ${response.status} ${(await response.text()).slice(0, 200)}`;
    if (response.status === 429) throw new Retry(1000 * Number(response.headers.get("retry-after") ?? 1), why);
    if (response.status === 401 || response.status >= 500) throw new Error(why);
    throw new Drop(why);
  };
  return {
    async post(message, files, kernel) {
      const { conversation: channel, thread, text, replyTo } = message;
      const response = await request("messages", {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": message.id },
        body: JSON.stringify({ channel, thread, text, reply_to: replyTo, files }),
      }, kernel);
      return ((await response.json()) as { id: string }).id;
    },
    async upload(file, kernel) {
      const chunks: Uint8Array[] = [];
      for await (const chunk of (await kernel.getBlob(file.blob!)).bytes) chunks.push(chunk);
      const headers = { "content-type": file.mime ?? "application/octet-stream", "idempotency-key": file.blob! };
      const name = encodeURIComponent(file.name ?? file.kind);
      const response = await request(`files?name=${name}`, { method: "POST", headers, body: Buffer.concat(chunks) }, kernel);
      return ((await response.json()) as { id: string }).id;
    },
    async download(id, kernel) {
      return (await request(`files/${encodeURIComponent(id)}`, {}, kernel)).body as AsyncIterable<Uint8Array>;
    },
  };
}
