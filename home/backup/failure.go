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

// Failure is of the newest nightly backup, if that could not be made. It is
// remembered beside the backups, so that neither a restart nor a damaged store
// hides it.
type Failure struct {
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

func failureFile(home *config.Home) string {
	return filepath.Join(home.Backups(), "nightly-failed.json")
}

// LastFailure is nil if the newest nightly backup was made.
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

// note remembers how the newest nightly backup went; nil: well.
func note(home *config.Home, f *Failure) error {
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

// KeepNightly gives nightly backups names of the kind that is never removed: a
// store begins afresh, and what it will be backed up as must not take their
// place.
func KeepNightly(home *config.Home) (kept []string, err error) {
	for _, f := range List(home) {
		if f.Kind != KindNightly {
			continue
		}
		to := Name(home, f.At)
		if err := place(f.File, to); err != nil {
			return kept, err
		}
		if err := os.Remove(f.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return kept, err
		}
		kept = append(kept, to)
	}
	return kept, nil
}
