package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/manifests"
)

// Build builds the extension in dir. A Go module is built beside its executable, which is
// then replaced by a rename, so that a running one stays whole; a package of Node with a
// build script runs that. Anything else needs no build: done is false. The error has what
// the compiler wrote.
func Build(ctx context.Context, dir string, m *manifests.Manifest) (done bool, err error) {
	switch {
	case exists(dir, "go.mod"):
		target := filepath.Join(dir, filepath.FromSlash(m.Run.Command))
		fresh := target + ".new"
		if err := run(ctx, dir, "go", "build", "-o", fresh, "."); err != nil {
			_ = os.Remove(fresh)
			return true, err
		}
		return true, os.Rename(fresh, target)
	case hasBuildScript(dir):
		if !exists(dir, "node_modules") {
			return true, fmt.Errorf("%s has no node_modules: run `npm install` there", dir)
		}
		return true, run(ctx, dir, "npm", "run", "--silent", "build")
	}
	return false, nil
}

func run(ctx context.Context, dir, program string, args ...string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("build it: %s is not in PATH: install it, or start this from a shell that finds it", program)
	}
	c := exec.CommandContext(ctx, path, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return errors.New(strings.TrimSpace(string(out)))
	}
	return err
}

func hasBuildScript(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return false
	}
	var p struct{ Scripts map[string]string }
	return json.Unmarshal(data, &p) == nil && p.Scripts["build"] != ""
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// made are directories with what tools make or fetch.
var made = map[string]bool{"node_modules": true, "vendor": true, "__pycache__": true, "dist": true, "build": true}

// Files are the sources below dir, with what changes when they do: not what begins with a
// dot, what tools make or fetch, and the executable. It also returns the directories.
func Files(dir, executable string) (files map[string]string, dirs []string) {
	files = map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case err != nil:
			return nil //nolint:nilerr // it has gone meanwhile
		case path != dir && (strings.HasPrefix(name, ".") || d.IsDir() && made[name]):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir():
			dirs = append(dirs, path)
		case name != executable && name != executable+".new":
			if info, err := d.Info(); err == nil {
				files[path] = fmt.Sprint(info.Size(), info.ModTime().Format(time.RFC3339Nano))
			}
		}
		return nil
	})
	return files, dirs
}
