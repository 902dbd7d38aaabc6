package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/sdk/sdktest/rules"
)

const nodeManifest = `api: 1
id: broken_node
name: Broken
version: 1.0.0
run: {command: node, args: [main.mjs, "MODE"], start_timeout: 60s}
provides: {tools: true}
permissions: {publish: [broken.done], subscribe: [broken.go]}
`

// nodeRules are the rules that verify says extensions in Node break, by their mistakes.
var nodeRules = map[string]string{
	"greets":                    "handshake",
	"forgets a package":         "handshake",
	"writes to the descriptor":  "stdout",
	"throws beside the handler": "outcome",
	"computes":                  "busy-health",
	"publishes what it may not": "grants",
	"never answers":             "tool-call",
	"locks":                     "kill",
	"stays":                     "exit",
}

// SWITCHBOARD_NODE is a directory in which the SDK for Node is installed; .ci/run makes it.
func TestVerifyFindsWhatIsBrokenInNode(t *testing.T) {
	t.Parallel()
	installed := os.Getenv("SWITCHBOARD_NODE")
	if installed == "" {
		t.Skip("SWITCHBOARD_NODE is not set to a directory in which the SDK for Node is installed")
	}
	program, err := os.ReadFile("testdata/broken_node/main.mjs")
	if err != nil {
		t.Fatal(err)
	}
	dir := func(mode string) string {
		dir := filepath.Join(t.TempDir(), "broken_node")
		if out, err := exec.Command("cp", "-R", installed, dir).CombinedOutput(); err != nil {
			t.Errorf("copy the packages: %v: %s", err, out)
		}
		manifest := strings.Replace(nodeManifest, "MODE", mode, 1)
		for name, text := range map[string]string{"main.mjs": string(program), "manifest.yaml": manifest} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
		return dir
	}
	if v := verify(t, dir("nothing"), "--patience", "1m"); !v.Passed {
		t.Errorf("without a mistake these fail: %+v", rules.Failed(v.Rules))
	}
	running := make(chan struct{}, 3)
	var checks sync.WaitGroup
	for mode, want := range nodeRules {
		checks.Go(func() {
			running <- struct{}{}
			defer func() { <-running }()
			dir := dir(mode)
			found := finds(t, mode, want, verify(t, dir, "--patience", "4s"))
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
