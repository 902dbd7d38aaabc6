// Logs as lines of JSON on stderr, in the format of hclog.
const levels = ["trace", "debug", "info", "warn", "error"];
const least = Math.max(0, levels.indexOf((process.env.SWITCHBOARD_LOG_LEVEL || "info").toLowerCase()));

const plain = (_, value) => (value instanceof Error ? value.stack ?? value.message : value);

/** A function for each level; those below the least one do nothing. */
export const logOf = (module) => Object.fromEntries(levels.map((level, rank) => [level, (message, fields = {}) => {
  if (rank < least) return;
  const line = { "@level": level, "@message": String(message), "@module": module, "@timestamp": new Date() };
  process.stderr.write(`${JSON.stringify({ ...line, ...fields }, plain)}\n`);
}]));
