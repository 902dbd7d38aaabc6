package manifests

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Entry is the place of one extension: what was read there, and what is wrong
// with it now. With both, the manifest is the last good one and stays in force.
type Entry struct {
	ID       string    // as the place says: the directory's or file's name
	File     string    // of the manifest
	Manifest *Manifest // nil: there never was a good one
	Err      error     // usually a Problems; nil: Manifest is what the file says
	Builtin  bool      // it came with the binary
}

// LoadBuiltin reads all *.yaml files at the top of fsys, in the order of their
// names. A file is called as the id. The prefix is put before names in
// messages. That config fits config_schema is left to the tests of the binary.
func LoadBuiltin(fsys fs.FS, prefix string) ([]Entry, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the built-in manifests: %w", err)
	}
	out := make([]Entry, len(names))
	var reading sync.WaitGroup
	for i, name := range names {
		reading.Go(func() { // side by side: a start waits for it
			e := Entry{ID: strings.TrimSuffix(name, ".yaml"), File: path.Join(prefix, name), Builtin: true}
			data, err := fs.ReadFile(fsys, name)
			if err != nil {
				e.Err = fmt.Errorf("read manifest %s: %w", e.File, err)
			} else {
				e.Manifest, e.Err = parse(e.File, data, true)
			}
			out[i] = e
		})
	}
	reading.Wait()
	return out, nil
}

// LoadDir reads <id>/manifest.yaml of each directory at the top of fsys, in
// the order of their names. Hidden directories are passed over. The root is
// where fsys is on disk; it is put before names, also to find executables. A
// root that does not exist holds nothing.
func LoadDir(fsys fs.FS, root string) ([]Entry, error) {
	names, err := extensionDirs(fsys)
	if err != nil {
		return nil, fmt.Errorf("list the extensions in %s: %w", root, err)
	}
	out := make([]Entry, 0, len(names))
	for _, id := range names {
		out = append(out, readEntry(fsys, root, id))
	}
	return out, nil
}

// extensionDirs lists the directories that may hold an extension.
func extensionDirs(fsys fs.FS) ([]string, error) {
	all, err := fs.ReadDir(fsys, ".")
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
		if info, err := fs.Stat(fsys, d.Name()); err == nil && info.IsDir() {
			names = append(names, d.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

func readEntry(fsys fs.FS, root, id string) Entry {
	e := Entry{ID: id, File: filepath.Join(root, id, FileName)}
	data, err := fs.ReadFile(fsys, path.Join(id, FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Err = fmt.Errorf("%s: there is no such file: every extension needs one%s", e.File, misnamed(fsys, id))
	case err != nil:
		e.Err = fmt.Errorf("read manifest %s: %w", e.File, err)
	default:
		e.Manifest, e.Err = Parse(e.File, data)
	}
	return e
}

// misnamed looks for a manifest under a name that is nearly right.
func misnamed(fsys fs.FS, id string) string {
	for _, name := range []string{"manifest.yml", "manifest.json", "Manifest.yaml", "manifest.yaml.txt"} {
		if _, err := fs.Stat(fsys, path.Join(id, name)); err == nil {
			return fmt.Sprintf(" (rename %s?)", name)
		}
	}
	return ""
}
