package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests"
)

// Record says where an installed extension comes from. It is a file beside the manifest, so
// it appears and goes with the extension.
type Record struct {
	ID          string    `json:"id"`
	Version     string    `json:"version"`
	Source      Source    `json:"source"`
	Commit      string    `json:"commit,omitempty"`    // of a git repository
	Archive     string    `json:"archive,omitempty"`   // SHA-256 of the archive, in hexadecimal
	Hash        string    `json:"hash"`                // SHA-256 of the files, in hexadecimal
	Publisher   string    `json:"publisher,omitempty"` // who serves the source, or what the index says
	InstalledAt time.Time `json:"installed_at"`
}

// Installed is an extension in a home.
type Installed struct {
	Manifest *manifests.Manifest
	Record   *Record // nil: it was put there by other means
	Changed  bool    // its files are not those that were installed
}

// ErrNotInstalled means that there is no such directory.
var ErrNotInstalled = words.Errorf("no such extension in this home")

// Read reads an extension of a home.
func Read(ctx context.Context, home *config.Home, id string) (x Installed, err error) {
	dir := filepath.Join(home.Extensions(), id)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) || !filepath.IsLocal(id) {
		return x, fmt.Errorf("%s: %w", id, ErrNotInstalled)
	}
	if x.Record, err = ReadRecord(home, id); err != nil {
		return x, err
	}
	data, err := filewatch.Read(filepath.Join(dir, manifests.FileName))
	if err == nil {
		x.Manifest, err = manifests.Parse(filepath.Join(dir, manifests.FileName), data)
	}
	if err != nil {
		x.Changed = x.Record != nil
		return x, words.Errorf("read the manifest: %w", err)
	}
	if x.Record != nil {
		hash, err := hashOf(ctx, dir, x.Manifest)
		if err != nil {
			return x, err
		}
		x.Changed = hash != x.Record.Hash
	}
	return x, nil
}

// ReadRecord reads the record of an extension; nil: it has none.
func ReadRecord(home *config.Home, id string) (*Record, error) {
	file := filepath.Join(home.Extensions(), id, manifests.RecordName)
	data, err := filewatch.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // absence is no error
	}
	r := &Record{}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return r, nil
}

// Records returns the records of all installed extensions, by id. A damaged one is an error
// of its own.
func Records(home *config.Home) (all []Record, err error) {
	entries, err := os.ReadDir(home.Extensions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		if e.Name()[0] == '.' {
			continue
		}
		r, err := ReadRecord(home, e.Name())
		if err != nil {
			errs = append(errs, err)
		} else if r != nil {
			all = append(all, *r)
		}
	}
	return all, errors.Join(errs...)
}

// write writes the record into the directory of an extension that is not visible yet.
func (r Record) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, manifests.RecordName)
	if err := os.RemoveAll(file); err != nil { // the source may have one
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o600)
}
