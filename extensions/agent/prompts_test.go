package agent

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	loop "github.com/switchboard-run/switchboard/sdk/agent"
)

var update = flag.Bool("update", false, "write the golden files")

func berlin(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func scene(t testing.TB, tools ...string) loop.Scene {
	t.Helper()
	zone := berlin(t)
	s := loop.Scene{
		Name:         "Assistant",
		Instructions: "You are a personal assistant.\n",
		Channel:      loop.Channel{ID: "cli_channel", Name: "Terminal", Readiness: "ready", Default: true},
		Channels: []loop.Channel{
			{ID: "cli_channel", Name: "Terminal", Readiness: "ready", Default: true},
			{ID: "telegram_channel", Name: "Telegram", Readiness: "unconfigured"},
		},
		Now: time.Date(2026, 3, 1, 9, 30, 0, 0, zone), Zone: zone.String(),
	}
	var granted []*extensionv1.Tool
	for _, name := range tools {
		granted = append(granted, &extensionv1.Tool{Name: name})
	}
	return s.With(granted)
}

var allTools = []string{
	"core/list_channels", "core/send_to_channel", "core/send_to_all_channels", "core/ask_user",
	"scheduler/schedule_once", "scheduler/schedule_recurring", "scheduler/list_schedules", "scheduler/cancel_schedule",
}

func TestSystemPromptGolden(t *testing.T) {
	t.Parallel()
	group := scene(t, allTools...)
	group.Group = true
	group.Channel = loop.Channel{ID: "telegram_channel", Name: "Telegram", Readiness: "ready"}
	alone := scene(t, allTools...)
	alone.Channel = loop.Channel{}
	bare := scene(t)
	bare.Instructions = ""
	bare.Channels = nil

	for name, s := range map[string]loop.Scene{
		"private": scene(t, allTools...), "group": group, "alone": alone, "bare": bare,
		"send_only": scene(t, "core/send_to_channel"),
		"memory":    scene(t, "memory/remember", "memory/recall", "memory/forget"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPrompts(t.TempDir(), hclog.NewNullLogger())
			got, err := p.System(s)
			if err != nil {
				t.Fatal(err)
			}
			preamble, err := p.Preamble(s)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "system_"+name, got+"\n\n--- preamble of a message ---\n"+preamble+"\n")
			s.Now, s.Channel, s.Channels = s.Now.Add(time.Hour), loop.Channel{}, nil
			if later, err := p.System(s); later != got || err != nil {
				t.Errorf("an hour later, in another channel, the system prompt is another (%v):\n%s", err, later)
			}
		})
	}
}

func TestEndingsGolden(t *testing.T) {
	t.Parallel()
	p := newPrompts(t.TempDir(), hclog.NewNullLogger())
	var all strings.Builder
	for _, e := range []loop.Ending{
		{Why: loop.WhyError, Detail: "429 too many requests"},
		{Why: loop.WhyEmpty},
		{Why: loop.WhyCapped, Steps: 20},
		{Why: loop.WhyTimeout, Limit: 10*time.Minute - 300*time.Millisecond},
	} {
		text, err := p.Say(e)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(e.Why + ": " + text + "\n")
	}
	golden(t, "endings", all.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), -update writes it:\n%s", path, diff)
	}
}

// The prompt does not explain tools that are not granted.
func TestSystemPromptNamesOnlyGrantedTools(t *testing.T) {
	t.Parallel()
	p := newPrompts(t.TempDir(), hclog.NewNullLogger())
	for _, granted := range [][]string{nil, {"core/send_to_channel"}, {"scheduler/schedule_once"}, allTools} {
		got, err := p.System(scene(t, granted...))
		if err != nil {
			t.Fatal(err)
		}
		wire := map[string]bool{}
		for _, name := range granted {
			wire[loop.WireName(name)] = true
		}
		for _, tool := range allTools {
			if named := loop.WireName(tool); !wire[named] && regexp.MustCompile(`\b`+named+`\b`).MatchString(got) {
				t.Errorf("granted %v, but the prompt names %s", granted, named)
			}
		}
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		p := newPrompts(dir, hclog.NewNullLogger())
		say := func() string {
			t.Helper()
			text, err := p.Say(loop.Ending{Why: loop.WhyCapped, Steps: 3})
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		write := func(name, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(checkInterval)
		}
		original := say()

		write("capped.md", "Хватит: {{.Steps}} шагов.\n")
		if got := say(); got != "Хватит: 3 шагов." {
			t.Errorf("the override does not serve: %q", got)
		}
		write("capped.md", "{{.Steps") // cannot be parsed
		if got := say(); got != original {
			t.Errorf("an override that cannot be parsed serves: %q", got)
		}
		write("capped.md", "{{.NoSuchField}}") // cannot be rendered
		if got := say(); got != original {
			t.Errorf("an override that cannot be rendered serves: %q", got)
		}
		write("now.md", "It is late. Current time: {{.Time}} ({{.Zone}})")
		if preamble, err := p.Preamble(scene(t)); err != nil ||
			preamble != "It is late. Current time: 2026-03-01T09:30:00+01:00 (Europe/Berlin)" {
			t.Errorf("preamble: %q, %v", preamble, err)
		}
		write("memory.md", "Remember: it is {{.Time}}.")
		if system, err := p.System(scene(t)); err != nil ||
			!strings.Contains(system, "Remember: it is 2026-03-01T09:30:00+01:00.") {
			t.Errorf("the overridden part is not in the whole (%v):\n%s", err, system)
		}
		if err := os.Remove(filepath.Join(dir, "capped.md")); err != nil {
			t.Fatal(err)
		}
		write("unknown.md", "not one of ours")
		if got := say(); got != original {
			t.Errorf("a removed override serves: %q", got)
		}
	})
}

func decode(t *testing.T, b []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkSystemPrompt(b *testing.B) {
	p := newPrompts(b.TempDir(), hclog.NewNullLogger())
	s := scene(b, allTools...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.System(s); err != nil {
			b.Fatal(err)
		}
	}
}

// A system prompt that depends on the time is found, whatever makes it so.
func TestTimed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file, text string
		timed            bool
	}{
		{"no time", "system.md", "You are {{.Name}} in {{.Zone}}.", false},
		{"the time", "system.md", "It is {{.Time}}.", true},
		{"the old end of a system prompt", "system.md", "{{.Instructions}}\n{{template \"now.md\" .}}", true},
		{"a part with a date", "channels.md", "{{.Now.Format \"2 January\"}}", true},
		{"where the time belongs", "now.md", "It is {{.Time}}.", false},
		{"what a person reads", "capped.md", "{{.Steps}}", false},
		{"cannot be rendered", "system.md", "{{.Tiem}}", false},
		{"cannot be parsed", "system.md", "{{.Time", false},
		{"not one of ours", "other.md", "{{.Time}}", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "prompts", test.file)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			var want []string
			if test.timed {
				want = []string{file}
			}
			if diff := cmp.Diff(want, Timed(dir)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if timed := Timed(t.TempDir()); timed != nil {
		t.Errorf("without files: %q", timed)
	}
}
