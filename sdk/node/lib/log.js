// Logs as lines of JSON on stderr, in the format of hclog.
const levels = ["trace", "debug", "info", "warn", "error"];
const least = Math.max(0, levels.indexOf((process.env.SWITCHBOARD_LOG_LEVEL || "info").toLowerCase()));

const plain = (value) => (value instanceof Error ? value.stack ?? value.message : value);

export class Log {
  constructor(module) {
    for (const [rank, level] of levels.entries()) {
      this[level] = (message, fields = {}) => {
        if (rank < least) return;
        const line = { "@level": level, "@message": String(message), "@module": module };
        for (const name in fields) line[name] = plain(fields[name]);
        process.stderr.write(`${JSON.stringify({ ...line, "@timestamp": new Date().toISOString() })}\n`);
      };
    }
  }
}
