// Package pin stores which programs of extensions a person allowed on this machine: one
// file, pins.json, that the machines of a cluster do not share.
//
// # Promises
//
// In a cluster, manifests come from other machines; their programs don't. A program runs
// only if its files, and the command that starts it, are those that were allowed here. A
// damaged file allows nothing.
package pin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests"
)

// Pin is one allowed program.
type Pin struct {
	Hash string    `json:"hash"`
	At   time.Time `json:"at"`
}

// content is the content of the file.
type content struct {
	Version    int            `json:"version"`
	Extensions map[string]Pin `json:"extensions"`
}

const version = 1

// File is the path of the file of a home.
func File(h *config.Home) string { return filepath.Join(h.Path(), "pins.json") }

func read(h *config.Home) (map[string]Pin, error) {
	text, err := filewatch.Read(File(h))
	if err != nil {
		return nil, err
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil || c.Version != version {
		return nil, fmt.Errorf("read %s: it is damaged: delete it to allow again what is there now", File(h))
	}
	if c.Extensions == nil {
		c.Extensions = map[string]Pin{}
	}
	return c.Extensions, nil
}

func write(h *config.Home, all map[string]Pin) error {
	text, err := json.MarshalIndent(content{version, all}, "", "  ")
	if err != nil {
		return err
	}
	return config.Replace(File(h), append(text, '\n'))
}

// Begin allows the programs that are in a home, unless it was called before. It has to be
// called before anything comes from another machine.
func Begin(ctx context.Context, h *config.Home) error {
	if _, err := os.Lstat(File(h)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir, err := manifests.OpenDir(h.Extensions())
	if err != nil {
		return err
	}
	all := map[string]Pin{}
	for _, e := range dir.Entries() {
		if e.Manifest == nil || e.Manifest.Run.Command == "" {
			continue
		}
		if all[e.ID], err = of(ctx, e.Manifest); err != nil {
			return fmt.Errorf("allow the program of %s: %w", e.ID, err)
		}
	}
	return write(h, all)
}

func of(ctx context.Context, m *manifests.Manifest) (Pin, error) {
	hash, err := install.Programs(ctx, m)
	return Pin{hash, time.Now().UTC().Truncate(time.Second)}, err
}

// Allow allows the program of an extension as it is now.
func Allow(ctx context.Context, h *config.Home, m *manifests.Manifest) error {
	if err := Begin(ctx, h); err != nil {
		return err
	}
	all, err := read(h)
	if err == nil {
		all[m.ID], err = of(ctx, m)
	}
	if err == nil {
		err = write(h, all)
	}
	if err != nil {
		return fmt.Errorf("allow the program of %s on this machine: %w", m.ID, err)
	}
	return nil
}

// Checker checks programs, and remembers their hashes while their files are the same. It is
// safe for concurrent use.
type Checker struct {
	Home *config.Home

	mu     sync.Mutex
	hashes map[string][2]string // state and hash, by extension
}

// Check returns why the program of an extension does not run here; nil: it does.
func (c *Checker) Check(m *manifests.Manifest) error {
	_, err := c.Allowed(m)
	return err
}

// Allowed returns the hash of the program of an extension, or why it does not run here.
func (c *Checker) Allowed(m *manifests.Manifest) (hash string, err error) {
	all, err := read(c.Home)
	if err != nil {
		return "", err
	}
	p, known := all[m.ID]
	if !known {
		return "", fmt.Errorf("its program was not allowed on this machine: put its files into %s, then: switchboard "+
			"cluster allow %s", m.Dir(), m.ID)
	}
	hash, err = c.hash(m)
	if err == nil && hash != p.Hash {
		err = fmt.Errorf("its program, or the command that starts it, is not the one that was allowed on this machine; "+
			"if that is right: switchboard cluster allow %s", m.ID)
	}
	if err != nil {
		return "", err
	}
	return hash, nil
}

func (c *Checker) hash(m *manifests.Manifest) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, err := stateOf(m)
	if err != nil {
		return "", err
	}
	if known := c.hashes[m.ID]; known[0] == state {
		return known[1], nil
	}
	hash, err := install.Programs(context.Background(), m)
	if err != nil {
		return "", err
	}
	if c.hashes == nil {
		c.hashes = map[string][2]string{}
	}
	c.hashes[m.ID] = [2]string{state, hash}
	return hash, nil
}

// stateOf changes when a file of the extension, or how it is started, does.
func stateOf(m *manifests.Manifest) (string, error) {
	var all strings.Builder
	fmt.Fprintf(&all, "%q %q %q;", m.Run.Command, m.Run.Args, m.Run.Env)
	err := filepath.WalkDir(m.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			fmt.Fprintf(&all, "%s %d %d %o;", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return err
	})
	return all.String(), err
}

// Watch calls onChange after each change of the file, until ctx ends.
func Watch(ctx context.Context, h *config.Home, onChange func()) {
	state := func() string {
		info, err := os.Stat(File(h))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}
	seen := state()
	filewatch.Run(ctx, filewatch.Target{
		Paths: func() []string { return []string{File(h)} },
		Scan: func() bool {
			if now := state(); now != seen {
				seen = now
				onChange()
			}
			return false
		},
		Poll: 5 * time.Second,
	})
}
