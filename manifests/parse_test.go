package manifests_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/switchboard-run/switchboard/manifests"
)

const file = "extensions/telegram_channel/manifest.yaml"

// full uses every field there is.
const full = `api: 1
id: telegram_channel
name: Telegram
version: 1.0.0
description: Talk to the assistant through a Telegram bot.
requires: {kernel: ">=0.1", extensions: [scheduler]}
run: {command: ./telegram-channel, args: [-v], env: [HTTPS_PROXY, MODE=x], start_timeout: 20s, shutdown_grace: 2s, memory: 256MiB}
provides:
  channel: {max_length: 4096, formats: [markdown], dedupe: false, drafts: true}
  tools: true
  commands: [photo, {name: voice, description: Speak}]
  models: [telegram_channel/*]
permissions:
  publish: [user.message, telegram_channel.*]
  subscribe: [{topic: reminder.due, ordered: false, ack_wait: 1m, max_deliver: 2, max_age: 1d}, "memory.*"]
  effects: [session.ensure, withdraw]
  network: [api.telegram.org, "*.example.org", "localhost:8081", "[::1]:80"]
secrets: [{name: TELEGRAM_BOT_TOKEN, required: true}, EXTRA]
data: pinned
restart: {policy: on-failure, backoff: 2s, max_backoff: 1m, max: 3, window: 10m}
config: {api_url: https://api.telegram.org, list: [1]}
config_schema:
  type: object
  required: [owner]
  properties: {api_url: {type: string, format: uri}, owner: {type: string}, list: {type: array, items: {type: integer}}}
agent:
  model: openai/gpt-4.1-mini
  instructions: |
    Be kind.
  uses_tools: [core/*, memory/search]
  context: [memory/relevant]
  memory: [personal]
  limits: {max_steps: 3, turn_timeout: 1m, max_tokens: 2000}
schedules:
  - {name: nightly, cron: "0 3 * * *", topic: memory.consolidate, timezone: Europe/Berlin, payload: {deep: true}}
`

var ignore = cmp.Options{
	cmpopts.IgnoreUnexported(manifests.Manifest{}),
	cmpopts.IgnoreFields(manifests.Manifest{}, "Digest", "ConfigSchema"),
}

func TestParseFull(t *testing.T) {
	t.Parallel()
	got, err := manifests.Parse(file, []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := &manifests.Manifest{
		API: 1, ID: "telegram_channel", Name: "Telegram", Version: "1.0.0",
		Description: "Talk to the assistant through a Telegram bot.",
		Requires:    manifests.Requires{Kernel: ">=0.1", Extensions: []string{"scheduler"}},
		Run: manifests.Run{
			Command: "./telegram-channel", Args: []string{"-v"}, Env: []string{"HTTPS_PROXY", "MODE=x"},
			StartTimeout: 20 * time.Second, ShutdownGrace: 2 * time.Second, Memory: 256 << 20, Processes: 64, Disk: 1 << 30,
		},
		Provides: manifests.Provides{
			Channel:  &manifests.Channel{MaxLength: 4096, Formats: []string{"markdown"}, Drafts: true},
			Tools:    true,
			Commands: []manifests.Command{{Name: "photo"}, {Name: "voice", Description: "Speak"}},
			Models:   []string{"telegram_channel/*"},
		},
		Permissions: manifests.Permissions{
			Publish: []string{"user.message", "telegram_channel.*"},
			Subscribe: []manifests.Subscription{
				{Topic: "reminder.due", AckWait: time.Minute, MaxDeliver: 2, MaxAge: 24 * time.Hour},
				{Topic: "memory.*", Ordered: true, AckWait: 30 * time.Second, MaxDeliver: 4, MaxAge: 24 * time.Hour},
			},
			Effects: []string{"session.ensure", "withdraw"},
			Network: []string{"api.telegram.org", "*.example.org", "localhost:8081", "[::1]:80"},
		},
		Secrets: []manifests.Secret{{Name: "TELEGRAM_BOT_TOKEN", Required: true}, {Name: "EXTRA"}},
		Restart: manifests.Restart{Policy: manifests.RestartOnFailure, Backoff: 2 * time.Second, MaxBackoff: time.Minute,
			Max: 3, Window: 10 * time.Minute},
		Data:   manifests.DataPinned,
		Config: map[string]any{"api_url": "https://api.telegram.org", "list": []any{int64(1)}},
		Agent: &manifests.Agent{
			Model: "openai/gpt-4.1-mini", Instructions: "Be kind.\n", UsesTools: []string{"core/*", "memory/search"},
			Context: []string{"memory/relevant"}, Memory: []string{"personal"},
			History: manifests.HistorySession,
			Limits:  manifests.Limits{MaxSteps: 3, TurnTimeout: time.Minute, MaxTokens: 2000},
		},
		Schedules: []manifests.Schedule{{
			Name: "nightly", Cron: "0 3 * * *", Topic: "memory.consolidate", Timezone: "Europe/Berlin",
			Payload: map[string]any{"deep": true},
		}},
		File: file,
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
	if got.Executable() != "extensions/telegram_channel/telegram-channel" {
		t.Errorf("executable is %q", got.Executable())
	}
}

func TestParseDefaults(t *testing.T) {
	t.Parallel()
	got, err := manifests.Parse("x/a/manifest.yaml",
		[]byte("api: 1\nid: a\nname: A\nversion: 1.0.0\nagent: {instructions: Hi}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &manifests.Manifest{
		API: 1, ID: "a", Name: "A", Version: "1.0.0", File: "x/a/manifest.yaml",
		Run: manifests.Run{Builtin: "agent", StartTimeout: 10 * time.Second, ShutdownGrace: 5 * time.Second,
			Processes: 64, Disk: 1 << 30},
		Restart: manifests.Restart{Policy: manifests.RestartAlways, Backoff: time.Second, MaxBackoff: 2 * time.Minute, Max: 5,
			Window: 5 * time.Minute},
		Data: manifests.DataCache,
		Agent: &manifests.Agent{
			Model: "default", Instructions: "Hi",
			History: manifests.HistorySession,
			Limits:  manifests.Limits{MaxSteps: 20, TurnTimeout: 10 * time.Minute, MaxTokens: 0},
		},
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Error(diff)
	}
}

// head is a manifest that lacks nothing; its lines are 1 to 5.
const head = "api: 1\nid: telegram_channel\nname: T\nversion: 1.0.0\nrun: {command: ./t}\n"

func TestParseProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"three mistakes": {`api: 1
id: telegram_channel
name: Telegram
version: 1.0.0
run:
  comand: ./telegram-channel
  start_timeout: 10 seconds
provides:
  channel: {max_length: "4096"}
`, `
F:6:3: run.comand: unknown field (did you mean command?)
F:7:18: run.start_timeout: expected a duration such as 30s, 10m or 30d, found "10 seconds"
F:9:25: provides.channel.max_length: expected a whole number, found the string "4096"`},
		"empty": {"", `
F:1:1: api: is required
F:1:1: id: is required
F:1:1: name: is required
F:1:1: version: is required
F:1:1: run: needs command (an executable) or builtin`},
		"syntax": {"api: 1\nid: [telegram\nname: x\n", `F:2:1: invalid YAML: did not find expected ',' or ']'`},
		"identity": {"api: 2\nid: Telegram-Channel\nname: \"\"\nversion: v1\nrun: {command: ./t}", `
F:1:6: api: this kernel reads manifests of api 1, not 2
F:2:5: id: "Telegram-Channel" must be lower-case letters, digits and underscores, a letter first, at most 64 (did you mean telegram_channel?)
F:3:7: name: is empty
F:4:10: version: "v1" is not a semantic version such as 1.0.0 (did you mean 1.0.0?)`},
		"other id": {strings.Replace(head, "telegram_channel", "telegram", 1),
			`F:2:5: id: is "telegram", but the directory is named "telegram_channel": they must be the same`},
		"reserved id": {strings.Replace(head, "telegram_channel", "system", 1),
			`F:2:5: id: "system" is reserved for the kernel`},
		"version is a number": {strings.Replace(head, "1.0.0", "1.0", 1),
			`F:4:10: version: expected a string, found the number 1.0: put it in quotes`},
		"both command and builtin": {strings.Replace(head, "./t", "./t, builtin: x", 1),
			`F:5:30: run.builtin: command and builtin exclude each other: remove one`},
		"neither": {strings.Replace(head, "{command: ./t}", "{args: [a], group: g}", 1), `
F:5:6: run: needs command (an executable) or builtin
F:5:13: run.args: needs command: a built-in takes no arguments
F:5:25: run.group: only built-in extensions share a process`},
		"requires": {head + "requires: {kernel: new, extensions: [a, a, B, telegram_channel]}", `
F:6:20: requires.kernel: "new" is not a version range such as >=0.1 or ^1.2
F:6:41: requires.extensions[1]: "a" is already in the list, in line 6
F:6:44: requires.extensions[2]: "B" must be lower-case letters, digits and underscores, a letter first, at most 64 (did you mean b?)
F:6:47: requires.extensions[3]: the extension requires itself`},
		"run values": {strings.Replace(head, "./t", "./t, memory: 256, start_timeout: -1s, shutdown_grace: 1h, env: [a-b, A=1, A=2]", 1), `
F:5:29: run.memory: expected a size such as 256MiB, found the number 256
F:5:49: run.start_timeout: must be at least 100ms
F:5:70: run.shutdown_grace: must be at most 10m
F:5:80: run.env[0]: "a-b" is neither NAME (inherited) nor NAME=value
F:5:90: run.env[2]: A is already set by run.env[1]`},
		"restart": {head + "restart: {policy: alway, backoff: 5m, max: 0, window: 0s}", `
F:6:19: restart.policy: "alway" is not one of always, on-failure, never (did you mean always?)
F:6:35: restart.backoff: max_backoff (2m0s) is shorter than backoff (5m0s)
F:6:44: restart.max: must be at least 1
F:6:55: restart.window: must be at least 1s`},
		"data": {head + "data: pined", `F:6:7: data: "pined" is not one of cache, pinned (did you mean pinned?)`},
		"provides": {head + `provides:
  channel: {max_length: 5, formats: [markdwon]}
  commands: [/photo, stop, photo, photo]
  models: [openai/*, telegram_channel, "telegram_channel/a*"]`, `
F:7:25: provides.channel.max_length: must be at least 50, or 0 for no limit
F:7:38: provides.channel.formats[0]: "markdwon" is not one of text, markdown, html (did you mean markdown?)
F:8:14: provides.commands[0].name: "/photo" must be lower-case letters, digits and underscores, a letter first, at most 32 (did you mean photo?)
F:8:22: provides.commands[1].name: /stop is a command of the kernel itself: choose another name
F:8:35: provides.commands[3]: "photo" is already in the list, in line 8
F:9:12: provides.models[0]: "openai/*" must start with the extension's own id: telegram_channel/
F:9:22: provides.models[1]: "telegram_channel" is neither <id>/<model> nor <id>/*
F:9:40: provides.models[2]: "telegram_channel/a*" is neither <id>/<model> nor <id>/*`},
		"for built-ins only": {head + "provides: {channel: {local: true}, topology: true, fallback: true}", `
F:6:29: provides.channel.local: is for built-in extensions only
F:6:46: provides.topology: is for built-in extensions only
F:6:62: provides.fallback: needs provides.models`},
		"topics": {head + `provides: {channel: {}}
permissions:
  publish: [user.mesage, agent.output, channel.send.cli_channel, Reminder.Due, a.*.b, x.y, "x.*", "*", "system.*"]
  subscribe:
  - channel.send.telegram_channel
  - {topic: system.delivery.daed, max_age: 10s}
  - {topic: reminder.due, ack_wait: 100ms, max_deliver: -1}
  - {topic: reminder.due}
  - {ack_wait: 1m}`, `
F:8:13: permissions.publish[0]: "user.mesage" is not a topic of the kernel, which owns user.* (did you mean user.message?)
F:8:26: permissions.publish[1]: agent.output needs no grant: every agent may publish it, and only agents may
F:8:40: permissions.publish[2]: "channel.send.cli_channel" cannot be granted: only the kernel publishes channel.send.*
F:8:66: permissions.publish[3]: "Reminder.Due" is not a topic pattern: write segments of lower-case letters, digits and underscores joined by dots, with .* only at the end (did you mean reminder.due?)
F:8:80: permissions.publish[4]: "a.*.b" is not a topic pattern: write segments of lower-case letters, digits and underscores joined by dots, with .* only at the end
F:8:87: permissions.publish[5]: "x.y" is already granted by "x.*"
F:8:104: permissions.publish[8]: "system.*" cannot be granted: only the kernel publishes system.delivery.dead
F:10:5: permissions.subscribe[0].topic: provides.channel implies it: remove it here
F:11:13: permissions.subscribe[1].topic: "system.delivery.daed" is not a topic of the kernel, which owns system.* (did you mean system.delivery.dead?)
F:11:44: permissions.subscribe[1].max_age: 10s is shorter than ack_wait (30s)
F:12:37: permissions.subscribe[2].ack_wait: must be at least 1s
F:12:57: permissions.subscribe[2].max_deliver: must be at least 1
F:13:5: permissions.subscribe[3]: "reminder.due" is already in the list, in line 12
F:14:5: permissions.subscribe[4].topic: is required`},
		"effects and network": {head + "permissions: {effects: [withdrawn, put, steal], network: [https://api.telegram.org/x, a b, 'h:0', h:x]}", `
F:6:25: permissions.effects[0]: "withdrawn" is not a grantable effect; these are: input, session.ensure, turn.cancel, withdraw (did you mean withdraw?)
F:6:36: permissions.effects[1]: "put" needs no grant: provides and publish imply it
F:6:41: permissions.effects[2]: "steal" is not a grantable effect; these are: input, session.ensure, turn.cancel, withdraw
F:6:59: permissions.network[0]: "https://api.telegram.org/x" is not a host: write api.example.org, *.example.org, host:port, $config.<key>, $env.<NAME> or * for any (did you mean api.telegram.org?)
F:6:87: permissions.network[1]: "a b" is not a host: write api.example.org, *.example.org, host:port, $config.<key>, $env.<NAME> or * for any
F:6:92: permissions.network[2]: "h:0" is not a host: write api.example.org, *.example.org, host:port, $config.<key>, $env.<NAME> or * for any
F:6:99: permissions.network[3]: "h:x" is not a host: write api.example.org, *.example.org, host:port, $config.<key>, $env.<NAME> or * for any`},
		"secrets": {strings.Replace(head, "./t", "./t, env: [KEY]", 1) + "secrets: [KEY, token, A B, {name: X, required: yes}, X]", `
F:6:11: secrets[0].name: KEY is also in run.env: remove it there, secrets are passed separately
F:6:16: secrets[1].name: "token" must be in capitals (did you mean TOKEN?)
F:6:23: secrets[2].name: "A B" is not the name of an environment variable
F:6:48: secrets[3].required: expected true or false, found the string "yes" (did you mean true?)
F:6:54: secrets[4]: "X" is already in the list, in line 6`},
		"agent": {"api: 1\nid: telegram_channel\nname: T\nversion: 1.0.0\nprovides: {tools: true}\nagent:\n  model: defalt\n  uses_tools: [core, a/b/c]\n  context: [memory/*]\n  memory: [Own]\n  limits: {max_steps: 0, turn_timeout: 0s, max_tokens: 5}\n", `
F:5:19: provides.tools: needs an executable (run.command)
F:6:1: agent.instructions: is required (or echo: true, for an agent without a model)
F:7:10: agent.model: "defalt" is neither default, scout nor <provider>/<model> (did you mean default?)
F:8:16: agent.uses_tools[0]: "core" is neither <extension>/<tool> nor <extension>/*
F:8:22: agent.uses_tools[1]: "a/b/c" is neither <extension>/<tool> nor <extension>/*
F:9:13: agent.context[0]: "memory/*" is not a tool: write <extension>/<tool>
F:10:12: agent.memory[0]: "Own" must be lower-case letters, digits and underscores, a letter first, at most 64 (did you mean own?)
F:11:23: agent.limits.max_steps: must be at least 1
F:11:40: agent.limits.turn_timeout: must be at least 1s
F:11:56: agent.limits.max_tokens: must be at least 1000`},
		"echo with a model": {head + "agent: {echo: true, model: default}",
			`F:6:28: agent.model: has no effect with echo: true`},
		"schedules": {head + `schedules:
- {name: a, cron: "0 3 * *", topic: memory.*}
- {name: a, cron: "0 0 30 2 *", topic: schedules.declared, timezone: Europe/Berlim}
- {name: b, cron: "TZ=Europe/Berlin", topic: nothing}
- {cron: "60 * * * *", topic: a.b}`, `
F:7:19: schedules[0].cron: "0 3 * *" is not a cron expression such as "0 3 * * *": expected exactly 5 fields, found 4: [0 3 * *]
F:7:37: schedules[0].topic: "memory.*" is a pattern: a schedule publishes one topic
F:8:3: schedules[1]: "a" is already in the list, in line 7
F:8:19: schedules[1].cron: "0 0 30 2 *" never fires
F:8:40: schedules[1].topic: "schedules.declared" cannot be granted: only the kernel publishes schedules.declared
F:8:70: schedules[1].timezone: "Europe/Berlim" is not a known time zone: write a name such as Europe/Berlin
F:9:19: schedules[2].cron: set the time zone in timezone, not in the expression
F:9:46: schedules[2].topic: "nothing" is not a topic pattern: write segments of lower-case letters, digits and underscores joined by dots, with .* only at the end
F:10:3: schedules[3].name: is required
F:10:10: schedules[3].cron: "60 * * * *" is not a cron expression such as "0 3 * * *": end of range (60) above maximum (59): 60`},
		"schedules by the config": {head + `schedules:
- {name: a, every: $config.evry, topic: a.b}
- {name: b, every: $config.every, cron: $config.cron, topic: a.b}
- {name: c, topic: a.b}
- {name: d, every: $every, topic: a.b}
- {name: e, every: 500ms, topic: a.b}
- {name: f, every: soon, topic: a.b}
- {name: g, cron: $config.deep.cron, topic: a.b}
- {name: h, cron: $config.deep., topic: a.b}
- {name: i, every: $config.deep.n, topic: a.b}
- {name: j, every: $config.missing, topic: a.b}
config: {every: 10 minutes, deep: {cron: "* * *", n: 5}}
config_schema: {type: object, properties: {missing: {type: string}}}`, `
F:7:20: schedules[0].every: "$config.evry": neither config nor config_schema has evry (did you mean $config.every?)
F:8:20: schedules[1].every: cron and every exclude each other: remove one
F:8:41: schedules[1].cron: "$config.cron": neither config nor config_schema has cron
F:9:3: schedules[2]: needs cron (such as "0 3 * * *") or every (such as 10m)
F:10:20: schedules[3].every: "$every" is not a reference: write $config.<key>, such as $config.every
F:11:20: schedules[4].every: "500ms" is too short: must be at least 1s
F:12:20: schedules[5].every: expected a duration such as 30s, 10m or 30d, found "soon"
F:14:19: schedules[7].cron: "$config.deep." has no key: write $config.<key>
F:17:17: config.every: expected a duration such as 30s, 10m or 30d, found "10 minutes"
F:17:42: config.deep.cron: "* * *" is not a cron expression such as "0 3 * * *": expected exactly 5 fields, found 3: [* * *]
F:17:54: config.deep.n: must be a string: the schedule i uses it`},
		"config": {head + `config:
  api_ulr: x
  api_url: not a url
  list: [1, two]
  deep: {on: 1}
config_schema:
  type: object
  additionalProperties: false
  required: [owner]
  properties:
    api_url: {type: string, format: uri}
    list: {type: array, items: {type: integer}}
    deep: {type: object, properties: {on: {type: boolean}}}
`, `
F:7:3: config.api_ulr: unknown field (did you mean api_url?)
F:8:12: config.api_url: "not a url" is not a valid uri: a scheme such as https is missing
F:9:13: config.list[1]: got string, want integer
F:10:14: config.deep.on: got number, want boolean`},
		"schema": {head + "config_schema:\n  type: object\n  properties:\n    a: {type: strin}\n    b: {minimum: x}\n", `
F:9:15: config_schema.properties.a.type: not a JSON schema: must be one of "array", "boolean", "integer", "null", "number", "object", "string"
F:10:18: config_schema.properties.b.minimum: not a JSON schema: got string, want number`},
		"admin": {head + "permissions: {admin: manage}", `
F:6:22: permissions.admin: manage is for built-in extensions only: it would let the extension approve what only you may approve; read shows it everything`},
		"admin misspelled": {head + "permissions: {admin: write}", `
F:6:22: permissions.admin: "write" is not one of read, manage`},
		"schema elsewhere": {head + "config_schema: {$ref: 'file:///etc/passwd'}\n",
			`F:6:16: config_schema: not a JSON schema: file:///etc/passwd is outside of the schema: a schema may refer only to its own parts`},
		"schema of a list": {head + "config_schema: {type: array}\n",
			`F:6:23: config_schema.type: must be object: a config is a mapping`},
		"schema bad regexp": {head + "config_schema: {properties: {a: {pattern: '('}}}\n",
			`F:6:43: config_schema.properties.a.pattern: not a JSON schema: "(" is not a valid regex: error parsing regexp: missing closing ): ` + "`(`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := manifests.Parse(file, []byte(tc.in))
			if err == nil {
				t.Fatalf("no error, got %+v", m)
			}
			got := strings.ReplaceAll(err.Error(), file+":", "F:")
			if diff := cmp.Diff(strings.TrimSpace(tc.want), got); diff != "" {
				t.Errorf("%s\ngot:\n%s", diff, got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(head + "config_schema: {$ref: '#'}\nconfig: {a: 1}"))
	f.Add([]byte(head + "config_schema: {anyOf: [{required: [a]}, {$ref: '#/$defs/x'}]}\nconfig: {a: []}"))
	f.Add([]byte(head + "schedules: [{name: a, cron: '@every 1s', topic: a.b}]"))
	f.Add([]byte("api: 1\nagent:\n  echo: true\nrestart:\n  max: -1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifests.Parse(file, data)
		if (m == nil) == (err == nil) {
			t.Fatalf("manifest %v with error %v", m, err)
		}
		lines := strings.Split(string(data), "\n")
		problems, _ := errors.AsType[manifests.Problems](err)
		for _, p := range problems {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > len([]rune(lines[p.Line-1]))+1 {
				t.Fatalf("position outside the file: %s", p)
			}
			if p.Message == "" || p.File != file {
				t.Fatalf("incomplete: %+v", p)
			}
		}
	})
}

// Those that share a process share what they may use of the machine: who is
// dropped in and asks for any of it has a process of its own.
func TestOneThatAsksForMoreSharesNoProcess(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{
		"": "agents", "permissions: {files: [~/Notes]}": "", "permissions: {network: [example.org]}": "",
		"permissions: {listen: [8080]}": "",
		"secrets: [{name: TOKEN}]":      "",
	} {
		m, err := manifests.Parse("/x/mine/manifest.yaml", []byte("api: 1\nid: mine\nname: X\nversion: 1.0.0\nrun: "+
			"{builtin: agent, group: agents}\nagent: {model: default, instructions: Help.}\n"+more))
		if err != nil {
			t.Fatal(err)
		}
		if m.Run.Group != want {
			t.Errorf("with %q its process is that of %q", more, m.Run.Group)
		}
	}
}
