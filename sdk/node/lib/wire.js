// The services of the contract, and its errors: the table of contract/errors.go.
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const protos = ["bus", "extension", "kernel"].map((name) => `switchboard/${name}/v1/${name}.proto`);
const definitions = loadSync([...protos, "plugin.proto", "grpc/health/v1/health.proto"], {
  includeDirs: [fileURLToPath(new URL("../proto", import.meta.url))],
  longs: Number, enums: String, defaults: true, oneofs: true,
});
/** The definition of a service, by its full name. */
export const service = (name) => /** @type {any} */ (definitions[name]);

export const cookie = "b81c3d9e5f7a4c20";
export const maxMessage = 16 << 20;
export const maxCommit = maxMessage - (64 << 10); // leaves room for framing

export const options = {
  "grpc.max_receive_message_length": maxMessage, "grpc.max_send_message_length": maxMessage,
  "grpc.enable_http_proxy": 0, "grpc.enable_retries": 0, "grpc.service_config_disable_resolution": 1,
  "grpc.client_idle_timeout_ms": 2 ** 31 - 1,
};

const codes = {
  conflict: "ABORTED", denied: "PERMISSION_DENIED", stale: "UNAUTHENTICATED", not_found: "NOT_FOUND",
  invalid: "INVALID_ARGUMENT", too_large: "OUT_OF_RANGE", full: "RESOURCE_EXHAUSTED",
  unavailable: "FAILED_PRECONDITION", gone: "UNAVAILABLE", canceled: "CANCELLED", timeout: "DEADLINE_EXCEEDED",
};

export class KernelError extends Error {
  name = "KernelError";

  constructor(code, message, cause) {
    super(message, { cause });
    this.code = code;
  }
}

/** The KernelError of a gRPC status, or of the error in a frame; another error as it is. */
export function fromStatus(status) {
  const { code, details, message } = status;
  if (typeof code !== "number") return status;
  const known = Object.keys(codes).find((name) => grpc.status[codes[name]] === code);
  return new KernelError(known ?? "unknown", details ?? message, status);
}

/** The gRPC status of any error. */
export function toStatus(error) {
  const name = error instanceof KernelError ? codes[error.code] : undefined;
  return { code: grpc.status[name ?? "UNKNOWN"], details: reasonOf(error) };
}

/** What people read of an error, at most 4 KiB. */
export function reasonOf(error) {
  const reason = error instanceof Error ? error.message || error.name : String(error);
  return Buffer.from(reason.toWellFormed()).subarray(0, 4 << 10).toString();
}

/** The reason of an abort. */
export const ended = (message, name = "AbortError") => Object.assign(new Error(message), { name });
export const shuttingDown = ended("the extension is shutting down");
/** Whether error is what a handler throws that the shutdown has aborted. */
export const isShutdown = (error) => error === shuttingDown || error?.cause === shuttingDown;

/** About the size of a message on the wire, never less. */
export function sizeOf(value) {
  if (typeof value === "string") return Buffer.byteLength(value) + 8;
  if (value instanceof Uint8Array) return value.byteLength + 8;
  if (value === null || typeof value !== "object") return 12;
  return Object.values(value).reduce((size, part) => size + sizeOf(part), 8);
}
