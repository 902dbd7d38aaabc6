// Uses the endpoint with the official client: node client.mjs <directory of the package> <base URL>.
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import assert from "node:assert";

const [, , dir, baseURL] = process.argv;
const entry = createRequire(dir + "/").resolve("openai");
const {OpenAI} = await import(pathToFileURL(entry));
const client = new OpenAI({baseURL, apiKey: "a-token", maxRetries: 0});
const model = "web_channel";

const models = [];
for await (const m of client.models.list()) models.push(m.id);
assert(models.includes(model));

const messages = [{role: "user", content: "hi"}];
const whole = await client.chat.completions.create({model, messages});
assert.equal(whole.choices[0].message.content, "You said: hi");
assert(whole._request_id);

let streamed = "";
for await (const chunk of await client.chat.completions.create({model, messages, stream: true}))
	streamed += chunk.choices[0]?.delta?.content ?? "";
assert.equal(streamed, "You said: hi");

const first = await client.responses.create({model, input: "one"});
assert.equal(first.output_text, "You said: one");
const next = await client.responses.create({model, input: "two", previous_response_id: first.id});
assert.equal(next.output_text, "You said: two");

const stream = client.responses.stream({model, input: "three"});
let text = "";
stream.on("response.output_text.delta", (e) => (text += e.delta));
const final = await stream.finalResponse();
assert.equal(text, "You said: three");
assert.equal(final.output_text, "You said: three");

await assert.rejects(client.chat.completions.create({model, messages, n: 2}), (e) => e.status === 400 && e.param === "n");
await assert.rejects(client.models.retrieve("nobody"), OpenAI.NotFoundError);
console.log("ok");
