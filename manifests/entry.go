package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/internal/filewatch"
)

// Entry is one extension as found: its manifest, and the error of its file. With both, the
// manifest is the last valid one, which stays in force.
type Entry struct {
	ID       string    // the name of the directory or file
	File     string    // of the manifest
	Manifest *Manifest // nil: there was no valid one
	Err      error     // usually a Problems; nil: Manifest is up to date
	Builtin  bool      // part of the binary
}

// LoadBuiltin reads all *.yaml files at the top of fsys, by name. A file is named after the
// id. The prefix precedes file names in messages. It does not check config against
// config_schema: the tests of the binary do.
func LoadBuiltin(fsys fs.FS, prefix string) ([]Entry, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the built-in manifests: %w", err)
	}
	out := make([]Entry, len(names))
	var reading sync.WaitGroup
	for i, name := range names {
		reading.Go(func() { // concurrently, as the start waits for it
			e := Entry{ID: strings.TrimSuffix(name, ".yaml"), File: path.Join(prefix, name), Builtin: true}
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				e.Err = fmt.Errorf("read manifest %s: %w", e.File, err)
			} else {
				e.Manifest, e.Err = parse(e.File, data, true, idOf(e.File))
			}
			out[i] = e
		})
	}
	reading.Wait()
	return out, nil
}

// LoadDir reads the manifest of each directory in root, by name, except hidden ones. A
// missing root has no entries.
func LoadDir(root string) ([]Entry, error) {
	names, err := extensionDirs(root)
	if err != nil {
		return nil, fmt.Errorf("list the extensions in %s: %w", root, err)
	}
	out := make([]Entry, 0, len(names))
	for _, id := range names {
		out = append(out, readEntry(root, id))
	}
	return out, nil
}

// Load reads the manifest in the directory of an extension that is not installed, so the
// directory can have any name.
func Load(dir string) (*Manifest, error) {
	file := filepath.Join(dir, FileName)
	data, err := filewatch.Read(file)
	if err := unreadable(file, err); err != nil {
		return nil, err
	}
	return parse(file, data, false, "")
}

// extensionDirs lists the directories that may hold an extension.
func extensionDirs(root string) ([]string, error) {
	all, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, d := range all {
		if strings.HasPrefix(d.Name(), ".") {
			continue
		}
		if info, err := os.Stat(filepath.Join(root, d.Name())); err == nil && info.IsDir() {
			names = append(names, d.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func readEntry(root, id string) Entry {
	data, err := filewatch.Read(filepath.Join(root, id, FileName))
	return entryOf(root, id, data, err)
}

// entryOf returns the entry of a manifest, or of the error of reading it.
func entryOf(root, id string, data []byte, err error) Entry {
	e := Entry{ID: id, File: filepath.Join(root, id, FileName)}
	if e.Err = unreadable(e.File, err); e.Err == nil {
		e.Manifest, e.Err = Parse(e.File, data)
	}
	return e
}

// unreadable is the error of reading the file of a manifest, in words.
func unreadable(file string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: file not found: every extension needs one%s", file, misnamed(filepath.Dir(file)))
	case err != nil:
		return fmt.Errorf("read manifest %s: %w", file, err)
	}
	return nil
}

// misnamed looks for a manifest with a similar name.
func misnamed(dir string) string {
	for _, name := range []string{"manifest.yml", "manifest.json", "Manifest.yaml", "manifest.yaml.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return fmt.Sprintf(" (rename %s?)", name)
		}
	}
	return ""
}
