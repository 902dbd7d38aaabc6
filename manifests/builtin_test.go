package manifests_test

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/manifests"
)

func TestBuiltinManifests(t *testing.T) {
	t.Parallel()
	entries, err := manifests.LoadBuiltin(manifests.FS, manifests.Prefix)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, e := range entries {
		if e.Err != nil {
			t.Errorf("%v", e.Err)
		}
		if !e.Builtin {
			t.Errorf("%s is not marked as built in", e.ID)
		}
		have[e.ID] = true
		data, err := fs.ReadFile(manifests.FS, e.ID+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		flags := regexp.MustCompile(`, local: true|\n  topology: true|admin: manage|\n  listen_on: .*|\nsecrets: \[\$.*`) // for built-ins only
		m, err := manifests.Parse(e.File, flags.ReplaceAll(data, nil))
		if err != nil {
			t.Errorf("read as a third party's: %v", err)
			continue
		}
		for _, p := range m.CheckConfig(m.Config) {
			t.Errorf("%s: its own config does not fit: %v: %s", e.ID, p.Path, p.Fault.Message)
		}
	}
	for _, id := range []string{"cli_channel", "telegram_channel", "openai", "offline", "orchestrator", "echo",
		"scheduler"} {
		if !have[id] {
			t.Errorf("there is no manifest of %s", id)
		}
	}
	set := manifests.Resolve(entries, manifests.Options{KernelVersion: "0.1.0-dev"})
	if len(set.Disabled) > 0 {
		t.Errorf("disabled: %+v", set.Disabled)
	}
	publishes := func(id, name string) bool {
		return slices.ContainsFunc(set.Enabled(id).Permissions.Publish, func(p string) bool { return topic.Match(p, name) })
	}
	withdraws := func(id string) bool { return slices.Contains(set.Enabled(id).Permissions.Effects, "withdraw") }
	for _, name := range []string{"system.user.notify", "system.agent.task", "memory.consolidate"} {
		if !publishes("scheduler", name) {
			t.Errorf("the scheduler may not publish %s", name)
		}
	}
	for _, name := range []string{"user.message", "agent.output", "agent.input.orchestrator", "channel.send.cli_channel"} {
		if publishes("scheduler", name) {
			t.Errorf("the scheduler may publish %s", name)
		}
	}
	if m := set.Enabled("orchestrator"); m.Agent == nil || publishes(m.ID, "user.message") || m.Run.Builtin != "agent" {
		t.Errorf("the orchestrator's grants or builtin are wrong: %+v", m.Run)
	}
	if !withdraws("scheduler") || withdraws("openai") {
		t.Error("the grant of withdraw is wrong")
	}
}

func BenchmarkLoadBuiltin(b *testing.B) {
	for b.Loop() {
		if _, err := manifests.LoadBuiltin(manifests.FS, manifests.Prefix); err != nil {
			b.Fatal(err)
		}
	}
}
