try {
  await import("@grpc/grpc-js");
  await import("@grpc/proto-loader");
} catch (error) {
  if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
  process.stderr.write("The packages that this extension needs are not installed: run `npm install` beside its manifest.yaml.\n");
  process.exit(1);
}
export const { serve } = await import("./serve.js");
export const { KernelError } = await import("./wire.js");
export const {
  call, Drop, publish, put, raw, remove, result, Retry, sees, splitFiles, tool, ToolResult, Unknown, whenIdle, withdraw,
} = await import("./effects.js");
