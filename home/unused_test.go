package home

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
)

// inspected returns what is unused of an extension, in a home with it, another extension
// that publishes weather.changed, and these settings.
func inspected(t *testing.T, manifest, settings string) string {
	t.Helper()
	home, err := config.OpenHomeAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string, path ...string) {
		t.Helper()
		file := filepath.Join(path...)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // one is an executable
			t.Fatal(err)
		}
	}
	for id, more := range map[string]string{"x": manifest, "weather": "permissions: {publish: [weather.changed]}\n"} {
		write("api: 1\nid: "+id+"\nname: X\nversion: 1.0.0\ndescription: Is x.\nrun: {command: ./x}\n"+more,
			home.Extensions(), id, "manifest.yaml")
		write("#!/bin/sh\n", home.Extensions(), id, "x")
	}
	write("extensions: {x: {allow: true}, weather: {allow: true}}\n"+settings, home.Config())
	found, err := Inspect(Options{
		Home: home, Env: func(string) (string, bool) { return "", false }, Builtins: os.DirFS("../manifests"),
		BuiltinsPrefix: "manifests", Builtin: func(members []string) []string { return members },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found.Entries {
		if e.ID == "x" {
			if e.Err != nil || e.Disabled != nil {
				t.Fatalf("x is not there: %v, %+v", e.Err, e.Disabled)
			}
			return strings.Join(e.Unused, "\n")
		}
	}
	t.Fatal("x is not there")
	return ""
}

func TestWhatIsUnusedIsSaid(t *testing.T) {
	const tools = "provides: {tools: true}\n"
	for _, c := range []struct{ name, manifest, settings, want string }{
		{"no agent", tools, "", "no agent may use its tools"},
		{"an agent", tools, "agents: {orchestrator: {tools: [+x/*]}}\n", ""},
		{"a command", "provides: {tools: true, commands: [jot]}\n", "", ""},
		{"a wrong topic", "permissions: {subscribe: [wether.changed]}\n", "", "to wether.changed, which no extension publishes"},
		{"a topic of another", "permissions: {subscribe: [weather.changed, weather.*]}\n", "", ""},
		{"a schedule", "permissions: {subscribe: [x.tick]}\nschedules: [{name: tick, topic: x.tick, every: 1h}]\n", "", ""},
		{"a topic of the kernel", "permissions: {subscribe: [system.delivery.dead]}\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := inspected(t, c.manifest, c.settings); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}
