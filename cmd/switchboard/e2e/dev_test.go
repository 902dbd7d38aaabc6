package e2e

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an author of an extension sees while it is written: what it gets, commits and is
// refused, what it says when its files change, and again what it got before.
func TestAnExtensionRunsWhileItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "caller")
	manifest := probeManifest("caller", "caller", "permissions: {subscribe: [weather.changed], tools: [scheduler/list_schedules]}\nprovides: {tools: true}")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(binary("probe"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "probe"), data, 0o755) //nolint:gosec // an executable
	}
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("manifest.yaml", manifest)
	dev := w.command("extensions", "dev", dir)
	cache := t.TempDir()
	dev.Env = append(dev.Env, "XDG_CACHE_HOME="+cache)
	in, err := dev.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &buffer{}
	dev.Stdout, dev.Stderr = out, out
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	sees := func(text string) {
		t.Helper()
		if !w.waitFor(func() bool { return strings.Contains(out.String(), text) }) {
			t.Fatalf("it does not say %q, but:\n%s", text, out.String())
		}
	}
	does := func(line string) {
		t.Helper()
		if _, err := io.WriteString(in, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	sees("ready    caller 1.0.0")
	homes, err := filepath.Glob(filepath.Join(cache, "switchboard", "dev", "caller-*", "data", "caller"))
	if err != nil || len(homes) != 1 {
		t.Fatalf("homes %q: %v", homes, err)
	}
	then := func(line string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(homes[0], "then"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	then(`{"tool": "scheduler/list_schedules", "arguments": {}}`)
	does(`publish weather.changed {"text": "rain"}`)
	sees("weather.changed from dev_bench")
	sees("tool.call.scheduler")
	sees("done")

	then(`{"tool": "memory/remember", "arguments": {"text": "x"}}`)
	does("step")
	sees("replay   e")
	sees("refused  not granted")

	does("publish weather.changed rain")
	sees(`"rain" is not JSON`)
	does("dance")
	sees("dance is not a command")

	write("manifest.yaml", strings.Replace(manifest, "1.0.0", "one", 1))
	sees(`"one" is not a semantic version`)
	sees("the previous one goes on")
	write("manifest.yaml", strings.Replace(manifest, "1.0.0", "1.0.1", 1))
	sees("ready    caller 1.0.1")
	does("quit")
	if err := dev.Wait(); err != nil {
		t.Errorf("it ended with %v:\n%s", err, out.String())
	}
}
