package e2e

import (
	"os"
	"strings"
	"testing"
)

// Configuration and manifests follow on each node, from whichever they were edited on.
func TestConfigurationFollowsOnEachNode(t *testing.T) {
	t.Parallel()
	_, all := nodes(t, "a", "b")
	a, b := all[0], all[1]
	a.start()
	a.telegramReady()
	b.standsBy()
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
