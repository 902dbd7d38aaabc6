package pin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/manifests"
)

// put writes an extension and returns its manifest.
func put(t *testing.T, h *config.Home, id, run, program string) *manifests.Manifest {
	t.Helper()
	dir := filepath.Join(h.Extensions(), id)
	text := "api: 1\nid: " + id + "\nname: X\nversion: 1.0.0\nrun: " + run + "\n"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{manifests.FileName: text, "x": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	m, err := manifests.Parse(filepath.Join(dir, manifests.FileName), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestOnlyAllowedProgramsRun(t *testing.T) {
	t.Parallel()
	h, err := config.OpenHomeAt(filepath.Join(t.TempDir(), "h"))
	if err != nil {
		t.Fatal(err)
	}
	c := &pin.Checker{Home: h}
	check := func(what string, m *manifests.Manifest, refused string) {
		t.Helper()
		if err := c.Check(m); refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := put(t, h, "a", "{command: ./x}", "1")
	if err := pin.Begin(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	check("what was there at first", first, "")
	later := put(t, h, "b", "{command: ./x}", "1")
	if err := pin.Begin(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	check("what came later", later, "was not allowed on this machine")
	if err := pin.Allow(t.Context(), h, later); err != nil {
		t.Fatal(err)
	}
	check("once it is allowed", later, "")
	check("another command", put(t, h, "a", "{command: /bin/sh, args: [-c, id]}", "1"), "is not the one")
	check("another argument", put(t, h, "a", "{command: ./x, args: [--evil]}", "1"), "is not the one")
	check("another variable", put(t, h, "a", "{command: ./x, env: [LD_PRELOAD=/tmp/x]}", "1"), "is not the one")
	check("another program", put(t, h, "a", "{command: ./x}", "22"), "is not the one")
	check("the same again", put(t, h, "a", "{command: ./x}", "1"), "")
	if err := os.WriteFile(pin.File(h), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("a damaged file", first, "damaged")
}
