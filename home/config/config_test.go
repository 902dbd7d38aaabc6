package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const shape = `timezone: Europe/Berlin
agents: {default: orchestrator, enabled: [orchestrator, chat], routing: {telegram_channel: orchestrator}}
channels:
  default: cli_channel
  hold: 20m
  telegram_channel: {allow_from: ["123456"], uncertain: hold}
models:
  default: [openai/gpt-4.1-mini]             # tried in this order
  scout: openai/gpt-4.1-nano
  daily_tokens: {total: 2_000_000, openai/gpt-4.1-mini: 1500000}
links: [{from: chief, to: researcher, mode: task, max_messages: 10, idle: 10m}]
retention: {events: 7d, dead: 60d}
backup: {nightly: false, at: "23:05", keep: 3}
extensions:
  telegram_channel: {enabled: false, config: {api_url: "https://api.telegram.org"}}
  heartbeat: {config: {every: 10m, active_hours: "08:00-22:00"}}
processes: separate
`

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := config.Parse("config.yaml", []byte(shape))
	if err != nil {
		t.Fatal(err)
	}
	want := &config.Config{
		Timezone: "Europe/Berlin", Processes: config.ProcessesSeparate, Sandbox: config.SandboxAuto,
		Agents: config.Agents{
			Default: "orchestrator", Enabled: []string{"orchestrator", "chat"},
			Routing: map[string]string{"telegram_channel": "orchestrator"},
			ByID:    map[string]config.Agent{},
		},
		Channels: config.Channels{
			Default: "cli_channel", Hold: 20 * time.Minute,
			ByID: map[string]config.Channel{"telegram_channel": {AllowFrom: []string{"123456"},
				Uncertain: config.UncertainHold}},
		},
		Models: config.Models{
			Default: []string{"openai/gpt-4.1-mini"}, Scout: "openai/gpt-4.1-nano",
			DailyTokens: map[string]int64{"total": 2000000, "openai/gpt-4.1-mini": 1500000},
			Concurrency: 64, Currency: "USD",
		},
		Links:     []config.Link{{From: "chief", To: "researcher", Mode: "task", MaxMessages: 10, Idle: 10 * time.Minute}},
		Retention: config.Retention{Events: 7 * 24 * time.Hour, Dead: 60 * 24 * time.Hour, Restore: 7 * 24 * time.Hour},
		Files:     config.Files{File: 50 << 20, Extension: 2 << 30, Total: 10 << 30},
		Backup:    config.Backup{At: "23:05", Keep: 3},
		Extensions: map[string]config.Extension{
			"telegram_channel": {Sandbox: true, Config: map[string]any{"api_url": "https://api.telegram.org"}},
			"heartbeat": {
				Enabled: true,
				Sandbox: true,
				Config:  map[string]any{"every": "10m", "active_hours": "08:00-22:00"},
			},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Config{})); diff != "" {
		t.Error(diff)
	}
	if got.EnabledExtension("telegram_channel", false) || !got.EnabledExtension("heartbeat", true) ||
		!got.EnabledExtension("other", false) {
		t.Error("enabled extensions are wrong")
	}
	if got.Channels.Of("telegram_channel").Uncertain != config.UncertainHold ||
		got.Channels.Of("other").Uncertain != config.UncertainResend {
		t.Error("channel settings are wrong")
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := &config.Config{
		Processes: config.ProcessesShared, Sandbox: config.SandboxAuto,
		Agents:    config.Agents{Default: "orchestrator"},
		Channels:  config.Channels{Hold: 15 * time.Minute},
		Models:    config.Models{Concurrency: 64, Currency: "USD"},
		Retention: config.Retention{Events: 30 * 24 * time.Hour, Dead: 90 * 24 * time.Hour, Restore: 7 * 24 * time.Hour},
		Files:     config.Files{File: 50 << 20, Extension: 2 << 30, Total: 10 << 30},
		Backup:    config.Backup{Nightly: true, At: "03:30", Keep: 7},
	}
	for name, text := range map[string]string{
		"empty": "", "comments": "# nothing\n", "empty keys": "agents:\nchannels:\nmodels:\n  default:\nextensions:\n",
	} {
		got, err := config.Parse("config.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Config{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got.Agents.Enabled != nil {
			t.Errorf("%s: no list of agents is a list", name)
		}
	}
	got, err := config.Load(t.TempDir() + "/absent.yaml")
	if err != nil || got.Channels.Hold != 15*time.Minute {
		t.Errorf("absent file: %+v, %v", got, err)
	}
	none, err := config.Parse("config.yaml", []byte("agents: {enabled: []}"))
	if err != nil || none.Agents.Enabled == nil {
		t.Errorf("an empty list of agents is not kept apart from none: %+v, %v", none, err)
	}
	single, err := config.Parse("config.yaml", []byte("models: {default: offline/grammar}\nagents: {channel_map: {a: b}}"))
	if err != nil || !cmp.Equal(single.Models.Default, []string{"offline/grammar"}) || single.Agents.Routing["a"] != "b" {
		t.Errorf("a single model or the alias: %+v, %v", single, err)
	}
}

// The default agent is the orchestrator, unless the file says who is enabled and
// not who is the default, or switches the orchestrator off.
func TestDefaultAgent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                          "orchestrator",
		"agents: {routing: {a: b}}": "orchestrator",
		"agents: {default: chat}":   "chat",
		"agents: {default: chat, enabled: [echo, chat]}": "chat",
		"agents: {enabled: [chat]}":                      "",
		"agents: {enabled: []}":                          "",
		"extensions: {orchestrator: {enabled: false}}":   "",
		// as it was asked for: an error to who writes
		"extensions: {orchestrator: {enabled: false}}\nagents: {default: orchestrator}": "orchestrator",
		"extensions: {chat: {enabled: false}}":                                          "orchestrator",
	} {
		c, err := config.Parse("config.yaml", []byte(text))
		if err != nil || c.Agents.Default != want {
			t.Errorf("%s: the default agent is %q, %v; want %q", text, c.Agents.Default, err, want)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"unknown keys": {"timezome: UTC\nagents: {defualt: a}\nchannels:\n  defualt: cli_channel\n  telegram_channel: {alow_from: []}\nextensions: {a: {enabeld: true}}", `
F:1:1: timezome: unknown field (did you mean timezone?)
F:2:10: agents.defualt: expected a mapping, found the string "a" (did you mean default?)
F:4:3: channels.defualt: expected a mapping, found the string "cli_channel" (did you mean default?)
F:5:22: channels.telegram_channel.alow_from: unknown field (did you mean allow_from?)
F:6:18: extensions.a.enabeld: unknown field (did you mean enabled?)`},
		"wrong values": {"timezone: Berlin\nchannels: {hold: 15, a: {allow_from: [123], uncertain: maybe}}\nmodels: {default: [gpt], scout: default, daily_tokens: {all: 5, total: 0}}\nretention: {events: 1m, dead: soon}\nextensions: {Heart-Beat: {enabled: yes}}\nbackup: {at: \"25:00\", keep: 0, nightly: often}", `
F:1:11: timezone: "Berlin" is not a known time zone: write a name such as Europe/Berlin
F:2:18: channels.hold: expected a duration such as 30s, found the number 15
F:2:39: channels.a.allow_from[0]: expected a string, found the number 123: put it in quotes
F:2:56: channels.a.uncertain: "maybe" is not one of resend, hold
F:3:20: models.default[0]: "gpt" is not a model: write <provider>/<model>, such as openai/gpt-4.1-mini
F:3:33: models.scout: "default" is not a model: write <provider>/<model>, such as openai/gpt-4.1-mini
F:3:57: models.daily_tokens.all: "all" is not a model: write <provider>/<model>, such as openai/gpt-4.1-mini
F:3:72: models.daily_tokens.total: must be at least 1
F:4:21: retention.events: must be at least 1h
F:4:31: retention.dead: expected a duration such as 30s, 10m or 30d, found "soon"
F:5:14: extensions.Heart-Beat: "Heart-Beat" must be lower-case letters, digits and underscores, a letter first, at most 64 (did you mean heart_beat?)
F:6:14: backup.at: "25:00" is not a time of day: write hours and minutes, such as 03:30
F:6:29: backup.keep: must be at least 1
F:6:41: backup.nightly: expected true or false, found the string "often"`},
		"agents": {"agents: {default: chta, enabled: [chat], routing: {}, channel_map: {}}", `
F:1:19: agents.default: "chta" is not in agents.enabled (did you mean chat?)
F:1:55: agents.channel_map: is the same as routing in line 1: use one of them`},
		"links": {"links:\n- {from: a, to: a}\n- {from: a, to: b}\n- {from: b, to: a}\n- {to: c, max_messages: 0, idle: 0s, mode: talk}", `
F:2:17: links[0].to: "a" cannot be linked to itself
F:4:3: links[2]: links[1] already links b and a
F:5:3: links[3].from: is required
F:5:25: links[3].max_messages: must be at least 1
F:5:34: links[3].idle: must be at least 1s
F:5:44: links[3].mode: "talk" is not one of conversation, task (did you mean task?)`},
		"syntax": {"agents:\n  default: a\n enabled: [a]\n", `F:3:2: invalid YAML: did not find expected key`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse("F", []byte(tc.in))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.TrimSpace(tc.want), err.Error()); diff != "" {
				t.Errorf("%s\ngot:\n%s", diff, err)
			}
		})
	}
}

const withSchema = `api: 1
id: heartbeat
name: H
version: 1.0.0
run: {command: ./h}
config: {every: 10m, nested: {a: 1, b: 2}, list: [1, 2], bad_default: 1}
config_schema:
  type: object
  additionalProperties: false
  required: [owner]
  properties:
    every: {type: string}
    owner: {type: string}
    nested: {type: object, properties: {a: {type: integer}, b: {type: integer}}}
    list: {type: array, items: {type: integer}}
    bad_default: {type: integer}
`

func TestEffective(t *testing.T) {
	t.Parallel()
	m, err := manifests.Parse("x/heartbeat/manifest.yaml", []byte(withSchema))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("config.yaml",
		[]byte("extensions:\n  heartbeat:\n    config: {owner: me, nested: {b: 3}, list: [9], every: null}"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Effective(m)
	want := map[string]any{
		"owner": "me", "nested": map[string]any{"a": int64(1), "b": int64(3)}, "list": []any{int64(9)},
		"bad_default": int64(1),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got["nested"].(map[string]any)["a"] = "changed"
	if m.Config["nested"].(map[string]any)["a"] != int64(1) {
		t.Error("the manifest's config is shared with the effective one")
	}

	for name, tc := range map[string]struct{ in, want string }{
		"mistakes": {"extensions:\n  heartbeat:\n    config:\n      ownr: me\n      nested: {b: x}\n      list: [1, two]\n", `
F:3:5: extensions.heartbeat.config.owner: is required
F:4:7: extensions.heartbeat.config.ownr: unknown field (did you mean owner?)
F:5:19: extensions.heartbeat.config.nested.b: got string, want integer
F:6:17: extensions.heartbeat.config.list[1]: got string, want integer`},
		"nothing set": {"timezone: UTC\n", `F:1:1: extensions.heartbeat.config.owner: is required`},
	} {
		c, err := config.Parse("F", []byte(tc.in))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Effective(m)
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		if diff := cmp.Diff(strings.TrimSpace(tc.want), err.Error()); diff != "" {
			t.Errorf("%s: %s\ngot:\n%s", name, diff, err)
		}
	}
}

func TestEffectiveTimesSchedules(t *testing.T) {
	t.Parallel()
	m, err := manifests.Parse("x/beat/manifest.yaml", []byte(`api: 1
id: beat
name: Beat
version: 1.0.0
run: {command: ./beat}
schedules: [{name: beat, every: $config.every, topic: beat.beat}]
config: {every: 10m}
`))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"{every: 5m}":    "",
		"{every: often}": `F:3:21: extensions.beat.config.every: expected a duration such as 30s, 10m or 30d, found "often"`,
		"{every: 10}":    `F:3:21: extensions.beat.config.every: must be a string: the schedule beat uses it`,
		"{every: null}":  `F:3:14: extensions.beat.config.every: is required: the schedule beat uses it`,
	} {
		c, err := config.Parse("F", []byte("extensions:\n  beat:\n    config: "+in+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if _, err := c.Effective(m); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
	}
}

func TestReferences(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("F", []byte(shape))
	if err != nil {
		t.Fatal(err)
	}
	got := c.References([]string{"orchestrator", "cli_channel", "telegram_chanel", "openai", "heartbeat", "chief",
		"researcher"}).Error()
	want := `F:2:57: agents.enabled[1]: there is no agent "chat"
F:2:74: agents.routing.telegram_channel: there is no channel "telegram_channel" (did you mean telegram_chanel?)
F:6:3: channels.telegram_channel: there is no channel "telegram_channel" (did you mean telegram_chanel?)
F:15:3: extensions.telegram_channel: there is no extension "telegram_channel" (did you mean telegram_chanel?)`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s\ngot:\n%s", diff, got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(shape))
	f.Add([]byte("channels: {default: , hold: 1d, x: }\nextensions:\n a: {config: {b: [1]}}"))
	m, err := manifests.Parse("x/heartbeat/manifest.yaml", []byte(withSchema))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("F", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v with error %v", c, err)
		}
		problems, _ := errors.AsType[config.Problems](err)
		if c != nil {
			_, err := c.Effective(m)
			more, _ := errors.AsType[config.Problems](err)
			problems = slices.Concat(more, c.References(nil))
		}
		lines := strings.Split(string(data), "\n")
		for _, p := range problems {
			if p.File == "F" && (p.Line < 1 || p.Line > len(lines) || p.Column < 1 ||
				p.Column > len([]rune(lines[p.Line-1]))+1) {
				t.Fatalf("position outside the file: %s", p)
			}
		}
	})
}

func TestSandboxIsSwitchedOffForOneOrForAll(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]bool{ // of box, and of others
		"":                                    {true, true},
		"sandbox: off":                        {false, false},
		"sandbox: required":                   {true, true},
		"extensions: {box: {sandbox: false}}": {false, true},
	} {
		c, err := config.Parse("config.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := [2]bool{c.Sandboxed("box"), c.Sandboxed("other")}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
