package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk/sdktest/rules"
)

const brokenManifest = `api: 1
id: broken
name: Broken
version: 1.0.0
run: {command: PROGRAM, start_timeout: TIMEOUT, env: [BROKEN=MODE]}
provides: {channel: {drafts: true}, tools: true, commands: [write], models: [broken/a]}
permissions: {publish: [user.message, broken.done], subscribe: [broken.go]}
`

// brokenRules are the rules that verify says extensions break, by how they are broken.
var brokenRules = map[string]string{
	"talks before the handshake": "handshake", "another version": "handshake", "dies": "handshake",
	"has no health service":  "grpc-health",
	"describes by mood":      "describe",
	"has a command too many": "provides", "describes no models": "provides",
	"says nothing about a tool": "tools", "has no schema": "tools",
	"needs a secret": "init", "never starts": "init",
	"is silent about its health": "health",
	"gives no credit":            "credit",
	"forgets some":               "outcome",
	"acks everything":            "unknown-topic",
	"dies of garbage":            "garbage", "panics on garbage": "garbage",
	"takes 4 MiB":          "large",
	"gives credit once":    "credit-returned",
	"is healthy when idle": "busy-health",
	"knows no cancels":     "cancel",
	"cannot repeat":        "repeat", "publishes apart": "repeat",
	"keeps its receipts": "receipt",
	"shows no drafts":    "drafts", "removes no drafts": "drafts",
	"has every tool":    "tool-unknown",
	"dies of arguments": "tool-garbage", "reads no arguments": "tool-garbage",
	"has no results":      "tool-call",
	"knows its calls":     "tool-repeat",
	"answers no commands": "command",
	"never finishes":      "model", "goes on after the finish": "model", "thinks forever": "model",
	"starts once":         "init-twice",
	"leaves a lock":       "kill",
	"survives the kernel": "kernel-gone",
	"never ends":          "shutdown",
	"stays":               "exit",
	"gives no reasons":    "outcomes", "answers without a kind": "outcomes", "answers twice": "outcomes",
	"uses no token":             "token",
	"uses an old lane":          "lane",
	"publishes what it may not": "grants", "queues inputs": "grants", "a tool publishes what it may not": "grants",
	"publishes no JSON": "payloads", "reports strangers": "payloads",
	"writes when it looks": "read-only",
	"talks":                "stdout",
}

// verify runs the command and returns its report, which its exit status agrees with.
func verify(t *testing.T, args ...string) (v verification) {
	t.Helper()
	c := exec.Command("switchboard", append([]string{"extensions", "verify", "--json"}, args...)...)
	c.Env = append(os.Environ(), "SWITCHBOARD_HOME="+t.TempDir())
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if json.Unmarshal(out, &v) != nil {
		t.Errorf("verify %v: %v\n%s\n%s", args, err, out, &stderr)
	}
	if v.Passed != (err == nil) {
		t.Errorf("verify %v: passed is %t, and the command ended with %v", args, v.Passed, err)
	}
	return v
}

func brokenDir(t *testing.T, mode string) string {
	t.Helper()
	timeout := "30s"
	if mode == "never starts" {
		timeout = "2s"
	}
	dir := filepath.Join(t.TempDir(), "broken")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Error(err)
	}
	manifest := strings.NewReplacer("PROGRAM", "broken", "MODE", mode, "TIMEOUT", timeout).Replace(brokenManifest)
	manifest = strings.Replace(manifest, "[BROKEN="+mode+"]", `["BROKEN=`+mode+`"]`, 1)
	if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o600); err != nil {
		t.Error(err)
	}
	return dir
}

// Each rule but tool-cancel and model-cancel, whose breach another one shows, has an
// extension that breaks it and nothing before it.
func TestVerifyFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	for _, name := range rules.Names() {
		caught := false
		for _, rule := range brokenRules {
			caught = caught || rule == name
		}
		if !caught && name != "tool-cancel" && name != "model-cancel" {
			t.Errorf("no broken extension shows that the rule %s finds anything", name)
		}
	}
	running := make(chan struct{}, 6) // they mostly wait
	var checks sync.WaitGroup
	for mode, want := range brokenRules {
		checks.Go(func() {
			running <- struct{}{}
			defer func() { <-running }()
			dir := brokenDir(t, mode)
			found := finds(t, mode, want, verify(t, dir, "--patience", "2s"))
			if found != "" { // this machine may be slow
				found = finds(t, mode, want, verify(t, dir, "--patience", "20s"))
			}
			if found != "" {
				t.Error(found)
			}
		})
	}
	checks.Wait()
}

// finds says what is wrong with a report on an extension that breaks a rule; empty: nothing.
func finds(t *testing.T, mode, want string, v verification) string {
	t.Helper()
	if v.Passed {
		return mode + ": it passes"
	}
	i := slices.IndexFunc(v.Rules, func(r rules.Result) bool { return r.Rule == want && r.State == rules.Fail })
	if i < 0 {
		return fmt.Sprintf("%s: the rule %s does not fail; these do: %+v", mode, want, rules.Failed(v.Rules))
	}
	if r := v.Rules[i]; r.Expected == "" || r.Seen == "" || r.Hint == "" {
		return fmt.Sprintf("%s: it does not say enough: %+v", mode, r)
	}
	return ""
}

func TestVerifyPassesWhatIsRight(t *testing.T) {
	t.Parallel()
	v := verify(t, brokenDir(t, ""), "--patience", "1m")
	if !v.Passed {
		t.Fatalf("these fail: %+v", rules.Failed(v.Rules))
	}
	for _, r := range v.Rules {
		if r.State != rules.Pass {
			t.Errorf("%s is not checked: %s", r.Rule, r.Seen)
		}
	}
}

// The built-in extensions run as they do in a kernel: from the program, in their sandbox.
func TestVerifyPassesBuiltins(t *testing.T) {
	t.Parallel()
	entries, err := manifests.LoadBuiltin(manifests.FS, manifests.Prefix)
	if err != nil || len(entries) < 20 {
		t.Fatal(len(entries), err)
	}
	for _, e := range entries {
		t.Run(e.ID, func(t *testing.T) {
			t.Parallel()
			if v := verify(t, e.ID, "--patience", "1m"); !v.Passed || len(v.Rules) == 0 {
				t.Errorf("these fail: %+v", rules.Failed(v.Rules))
			}
		})
	}
}
