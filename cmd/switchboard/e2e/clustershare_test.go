package e2e

import (
	"os"
	"strings"
	"testing"
)

// Configuration and manifests follow on each node, from whichever they were edited on.
func TestConfigurationFollowsOnEachNode(t *testing.T) {
	t.Parallel()
	_, all := serving(t, "a", "b")
	a, b := all[0], all[1]
	b.eventually("the first meeting", func() bool {
		_, err := os.Stat(b.file(".shared.json"))
		return err == nil
	})
	a.config("timezone: Europe/Oslo\nchannels: {telegram_channel: {allow_from: ['1001', '1002']}}\n")
	b.eventually("the owner's edit on the standby", func() bool {
		return strings.Contains(b.text("config.yaml"), "Europe/Oslo")
	})
	timezone := func(w *world) func() bool {
		return func() bool { return strings.Contains(w.must("status", "--json"), "Europe/Rome") }
	}
	b.owner()
	b.config(strings.ReplaceAll(a.text("config.yaml"), "Oslo", "Rome"))
	a.eventually("the standby's edit in force", timezone(a))
	b.config("nonsense: true\n")
	b.eventually("an invalid edit aside", func() bool {
		text, err := os.ReadFile(b.file("config.yaml.conflict"))
		return err == nil && strings.Contains(string(text), "nonsense") && strings.Contains(b.text("config.yaml"), "Rome")
	})
	a.write("api: 1\nid: jotter\nname: Jotter\nversion: 1.0.0\nrun: {command: ./jotter}\n", 0o600,
		"extensions", "jotter", "manifest.yaml")
	b.eventually("a manifest on the standby", func() bool {
		_, err := os.Stat(b.file("extensions", "jotter", "manifest.yaml"))
		return err == nil
	})
	// The standby takes over with what is in force, not with what it started with.
	token := a.ask(1)
	a.hears(token)
	a.crash()
	b.eventually("the standby to take over", func() bool { return b.owner() == b.home })
	if !timezone(b)() {
		t.Error("the new owner has an old configuration")
	}
}

// A manifest reaches each node; its program runs only where it was allowed.
func TestAProgramRunsOnlyWhereItWasAllowed(t *testing.T) {
	t.Parallel()
	_, all := nodes(t, "a", "b")
	a, b := all[0], all[1]
	const script = "#!/bin/sh\necho ran > \"$TMPDIR/ran\"\nsleep 1\n"
	a.write(script, 0o700, "extensions", "jotter", "run")
	a.write("api: 1\nid: jotter\nname: Jotter\nversion: 1.0.0\nrun: {command: ./run}\n", 0o600,
		"extensions", "jotter", "manifest.yaml")
	ran := func(w *world) bool {
		_, err := os.Stat(w.file("data", "jotter", "tmp", "ran"))
		return err == nil
	}
	a.start()
	a.eventually("the program on the machine where it was from the beginning", func() bool { return ran(a) })
	b.standsBy()
	b.eventually("the manifest on the standby", func() bool {
		_, err := os.Stat(b.file("extensions", "jotter", "manifest.yaml"))
		return err == nil
	})
	b.write(script, 0o700, "extensions", "jotter", "run")
	a.crash()
	b.eventually("the standby to take over", func() bool { return b.owner() == b.home })
	out, _, _ := b.cli("doctor", "--offline")
	if !strings.Contains(out, "switchboard cluster allow jotter") {
		t.Errorf("doctor does not name the program:\n%s", out)
	}
	if ran(b) {
		t.Error("a program ran that was not allowed")
	}
	b.must("cluster", "allow", "jotter")
	b.eventually("the program after it was allowed", func() bool { return ran(b) })
}
