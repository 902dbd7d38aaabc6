import assert from "node:assert/strict";
import { test } from "node:test";
import { isSigned, sign } from "./signature.js";

test("only a recent signature of the same body counts", () => {
  const signature = sign("secret", "1000", "body");
  assert.ok(isSigned("secret", "1000", "body", signature, 1299));
  assert.ok(!isSigned("secret", "1000", "body", signature, 1301), "too old");
  assert.ok(!isSigned("secret", "1000", "body", signature, 699), "from the future");
  assert.ok(!isSigned("secret", "1000", "bodY", signature, 1000), "another body");
  assert.ok(!isSigned("secret", "1001", "body", signature, 1001), "another time");
  assert.ok(!isSigned("other", "1000", "body", signature, 1000), "another secret");
  assert.ok(!isSigned("secret", "", "body", "", 1000), "none");
});
