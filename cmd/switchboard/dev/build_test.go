package dev

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/manifests"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A build replaces the executable by another file, so that a running one stays whole; one
// that fails leaves it.
func TestBuildReplacesTheExecutable(t *testing.T) {
	dir := t.TempDir()
	m := &manifests.Manifest{}
	m.Run.Command = "./jotter"
	write(t, dir, map[string]string{"go.mod": "module jotter\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n", "jotter": "old"})
	before, err := os.Stat(filepath.Join(dir, "jotter"))
	if err != nil {
		t.Fatal(err)
	}
	if done, err := Build(t.Context(), dir, m); !done || err != nil {
		t.Fatal(done, err)
	}
	built, err := os.Stat(filepath.Join(dir, "jotter"))
	if err != nil || os.SameFile(before, built) || built.Mode()&0o100 == 0 {
		t.Errorf("the executable is %v: %v", built, err)
	}
	write(t, dir, map[string]string{"main.go": "package main\n\nfunc main() { oops }\n"})
	if _, err := Build(t.Context(), dir, m); err == nil || !strings.Contains(err.Error(), "undefined: oops") {
		t.Errorf("error %v", err)
	}
	after, err := os.Stat(filepath.Join(dir, "jotter"))
	if err != nil || !os.SameFile(built, after) {
		t.Errorf("the executable changed: %v", err)
	}
}

func TestBuildNeedsModules(t *testing.T) {
	dir := t.TempDir()
	if done, err := Build(t.Context(), dir, &manifests.Manifest{}); done || err != nil {
		t.Errorf("without anything to build: %t, %v", done, err)
	}
	write(t, dir, map[string]string{"package.json": `{"scripts": {"build": "tsc"}}`})
	if _, err := Build(t.Context(), dir, &manifests.Manifest{}); err == nil || !strings.Contains(err.Error(), "npm install") {
		t.Errorf("error %v", err)
	}
}

func TestFilesAreSources(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.go": "", "lib/a.go": "", ".git/x": "", "node_modules/x/y.js": "", "jotter": "", "jotter.new": "", "dist/x.js": "",
	})
	files, dirs := Files(dir, "jotter")
	var names []string
	for _, f := range slices.Sorted(maps.Keys(files)) {
		name, err := filepath.Rel(dir, f)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "lib/a.go main.go" {
		t.Errorf("files %q", got)
	}
	if len(dirs) != 2 {
		t.Errorf("directories %q", dirs)
	}
}
