// The services of the contract, and its errors: the table of contract/errors.go.
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const definitions = loadSync(["bus", "extension", "kernel"].map((name) => `switchboard/${name}/v1/${name}.proto`), {
  includeDirs: [fileURLToPath(new URL("../proto", import.meta.url))],
  longs: Number, enums: String, defaults: true, oneofs: true,
});
const loaded = /** @type {any} */ (grpc.loadPackageDefinition(definitions)).switchboard;
export const extension = loaded.extension.v1;
export const kernel = loaded.kernel.v1;

export const cookie = "b81c3d9e5f7a4c20";
export const maxMessage = 16 << 20;
export const maxCommit = maxMessage - (64 << 10); // leaves room for framing
export const frameBytes = 1 << 20; // a frame of this size is sent even if more is waiting

export const options = {
  "grpc.max_receive_message_length": maxMessage,
  "grpc.max_send_message_length": maxMessage,
  "grpc.enable_http_proxy": 0,
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
};

const { status } = grpc;
const codes = new Map([
  ["conflict", status.ABORTED], ["denied", status.PERMISSION_DENIED], ["stale", status.UNAUTHENTICATED],
  ["not_found", status.NOT_FOUND], ["invalid", status.INVALID_ARGUMENT], ["too_large", status.OUT_OF_RANGE],
  ["full", status.RESOURCE_EXHAUSTED], ["unavailable", status.FAILED_PRECONDITION], ["gone", status.UNAVAILABLE],
  ["canceled", status.CANCELLED], ["timeout", status.DEADLINE_EXCEEDED],
]);

export class KernelError extends Error {
  constructor(code, message, cause) {
    super(message, { cause });
    this.name = "KernelError";
    this.code = code;
  }
}

/** The KernelError of a gRPC status, or of the error in a frame. */
export function fromStatus({ code, details, message }, cause) {
  for (const [name, number] of codes) {
    if (number === code) return new KernelError(name, details ?? message, cause);
  }
  return new KernelError("unknown", details ?? message, cause);
}

/** The gRPC status of any error. */
export function toStatus(error) {
  const code = error instanceof KernelError ? codes.get(error.code) : undefined;
  return { code: code ?? status.UNKNOWN, details: reasonOf(error) };
}

/** What people read of an error, at most 4 KiB. */
export function reasonOf(error) {
  const reason = error instanceof Error ? error.message || error.name : String(error);
  return Buffer.from(reason.toWellFormed()).subarray(0, 4 << 10).toString();
}

/** About the size of a message on the wire, never less. */
export function sizeOf(value) {
  if (typeof value === "string") return Buffer.byteLength(value) + 8;
  if (value instanceof Uint8Array) return value.byteLength + 8;
  if (value === null || typeof value !== "object") return 12;
  let size = 8;
  for (const key in value) size += sizeOf(value[key]);
  return size;
}

/** Splits items, whose sizes size tells, into frames. */
export function* frames(items, size) {
  for (let from = 0, to = 0; from < items.length; from = to) {
    let bytes = 0;
    do bytes += size(items[to++]);
    while (to < items.length && bytes + size(items[to]) <= frameBytes);
    yield items.slice(from, to);
  }
}
