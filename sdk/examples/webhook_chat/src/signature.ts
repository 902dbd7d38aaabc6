import { createHmac, timingSafeEqual } from "node:crypto";

const maxAge = 5 * 60; // seconds

export const sign = (secret: string, timestamp: string, body: string | Uint8Array): string =>
  `v1=${createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex")}`;

/** Whether the platform has signed the body, within the last five minutes. */
export function isSigned(
  secret: string, timestamp: string, body: string | Uint8Array, signature: string, now = Date.now() / 1000,
): boolean {
  if (!(Math.abs(now - Number(timestamp || NaN)) <= maxAge)) return false;
  const [want, got] = [Buffer.from(sign(secret, timestamp, body)), Buffer.from(signature)];
  return want.length === got.length && timingSafeEqual(want, got);
}
