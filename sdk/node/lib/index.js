try {
  await import("@grpc/grpc-js");
  await import("@grpc/proto-loader");
} catch (error) {
  if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  process.stderr.write("The packages that this extension needs are not installed: run `npm install` beside its manifest.yaml.\n");
  process.exit(1);
}
const { serve } = await import("./serve.js");
const { KernelError } = await import("./wire.js");

export { serve, KernelError };
export {
  call, Drop, publish, put, raw, remove, result, Retry, sees, splitFiles, tool, ToolResult, Unknown, whenIdle, withdraw,
} from "./effects.js";
