package backup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
)

// Failure describes why the newest nightly backup failed. A file beside the
// backups keeps it, so that it outlives a restart and a damaged store.
type Failure struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

func failureFile(home *config.Home) string {
	return filepath.Join(home.Backups(), "nightly-failed.json")
}

// LastFailure returns nil if the newest nightly backup succeeded.
func LastFailure(home *config.Home) *Failure {
	b, err := os.ReadFile(failureFile(home))
	if err != nil {
		return nil
	}
	var f Failure
	if err := json.Unmarshal(b, &f); err != nil {
		return nil
	}
	return &f
}

// saveFailure stores the result of the newest nightly backup; nil: success.
func saveFailure(home *config.Home, f *Failure) error {
	file := failureFile(home)
	if f == nil {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(home.Backups(), 0o700); err != nil {
		return err
	}
	next := filepath.Join(home.Backups(), unfinished+"failure")
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return err
	}
	if err := errors.Join(syncFile(next), rename(next, file)); err != nil {
		return err
	}
	return syncFile(home.Backups())
}

// KeepNightly renames nightly backups to manual ones, which are never removed:
// the backups of a new store must not replace those of the old one.
func KeepNightly(home *config.Home) (kept []string, err error) {
	for _, f := range List(home) {
		if f.Kind != KindNightly {
			continue
		}
		to := Name(home, f.At)
		if err := place(f.File, to); err != nil {
			return kept, err
		}
		if err := remove(f.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, err
		}
		kept = append(kept, to)
	}
	return kept, nil
}
