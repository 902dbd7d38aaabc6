package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Restored is what a restoration did.
type Restored struct {
	Info
	// Before is the directory in which what was replaced is kept; empty: there
	// was nothing.
	Before string `json:"kept_in,omitempty"`
}

const (
	restoring = "restoring" // is whole, and takes its place
	planName  = "plan.json"
	// KeptPrefix begins the names of what restorations have replaced.
	KeptPrefix = "before-restore-"
)

// rename is replaced by tests that die in the middle.
var rename = os.Rename

// plan says what takes the place of what.
type plan struct {
	Before string   // name in the home
	Away   []string // names in the home that are kept there
	New    []string // names that come in
}

// Restore replaces what the backup speaks for, the store alone if that is all
// that is wanted. The caller holds the home.
func Restore(ctx context.Context, home *config.Home, file string, storeOnly bool) (r Restored, err error) {
	if _, err := Finish(home); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(home.Path(), unfinished)
	if err != nil {
		return r, fmt.Errorf("restoring %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	if r.Info, err = unpack(ctx, file, dir, 0); err != nil {
		return r, fmt.Errorf("nothing was restored: %w", err)
	}
	if storeOnly {
		r.Parts = []string{storeName}
	}
	if err := prepare(dir, r.Parts); err != nil {
		return r, fmt.Errorf("nothing was restored: preparing %s: %w", file, err)
	}
	if err := rename(dir, filepath.Join(home.Path(), restoring)); err != nil {
		return r, fmt.Errorf("nothing was restored: %w", err)
	}
	// From here on it is completed. That it has begun is on the disk before
	// anything is moved.
	if err := syncFile(home.Path()); err != nil {
		return r, fmt.Errorf("restoring %s: %w; the next start completes it", file, err)
	}
	r.Before, err = Finish(home)
	return r, err
}

// prepare makes what was unpacked ready to take its place as it is.
func prepare(dir string, parts []string) error {
	store := filepath.Join(dir, storeName)
	if err := sqlite.MarkUncertain(store); err != nil {
		return err
	}
	if err := sqlite.Compact(store); errors.Is(err, journal.ErrDamaged) { // without room for it, it stays as large as it is
		return err
	}
	p := plan{Before: KeptPrefix + time.Now().UTC().Format(stampLayout)}
	for n, stamp := 2, p.Before; there(filepath.Join(filepath.Dir(dir), p.Before)); n++ {
		p.Before = fmt.Sprintf("%s-%d", stamp, n)
	}
	for _, part := range parts {
		if p.Away = append(p.Away, part); part == storeName {
			p.Away = append(p.Away, storeName+"-wal", storeName+"-shm", storeName+"-journal")
		}
		if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
			p.New = append(p.New, part)
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, planName), b, 0o600); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error { // all of it is on the disk
		return errors.Join(err, syncFile(path))
	})
}

// Finish completes a restoration that was begun, if there is one, and says where
// what it replaced is kept. It can be repeated at any point.
func Finish(home *config.Home) (before string, err error) {
	dir := filepath.Join(home.Path(), restoring)
	b, err := os.ReadFile(filepath.Join(dir, planName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	var p plan
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err == nil {
		before, err = p.finish(home.Path(), dir)
	}
	if err != nil {
		return before, fmt.Errorf("completing the restoration in %s: %w; what it replaces is in %s", dir, err, filepath.Join(home.Path(), p.Before))
	}
	return before, nil
}

func (p *plan) finish(home, dir string) (before string, err error) {
	before = filepath.Join(home, p.Before)
	if err := os.Mkdir(before, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return before, err
	}
	for _, name := range p.Away {
		if slices.Contains(p.New, name) && !there(filepath.Join(dir, name)) {
			continue // the new one is in its place already
		}
		if err := putAway(filepath.Join(home, name), filepath.Join(before, name)); err != nil {
			return before, err
		}
	}
	// Nothing new comes in before the old is safely away: a store beside the log
	// of another one would be destroyed by it.
	if err := errors.Join(syncFile(before), syncFile(home)); err != nil {
		return before, err
	}
	for _, name := range p.New {
		if err := rename(filepath.Join(dir, name), filepath.Join(home, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return before, err
		}
	}
	if err := syncFile(home); err != nil {
		return before, err
	}
	if os.Remove(before) == nil { // it is empty
		before = ""
	}
	done := filepath.Join(home, unfinished+"restored")
	if err := errors.Join(os.RemoveAll(done), rename(dir, done)); err != nil {
		return before, err
	}
	return before, os.RemoveAll(done)
}

// putAway moves what is replaced, if it is there. When that has happened already,
// what stands in its place was made by whoever has opened the home since: mostly
// an empty directory.
func putAway(from, to string) error {
	if there(to) {
		if unix.Rmdir(from) == nil {
			return nil
		}
		for n, first := 2, to; there(to); n++ {
			to = fmt.Sprintf("%s-%d", first, n)
		}
	}
	if err := rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Sweep removes what was left behind by those who were killed. The caller holds
// the home.
func Sweep(home *config.Home) {
	for _, pattern := range []string{
		filepath.Join(home.Path(), unfinished+"*"), filepath.Join(home.Path(), sqlite.LookPrefix+"*"),
		filepath.Join(home.Backups(), unfinished+"*"), filepath.Join(home.Backups(), sqlite.LookPrefix+"*"),
	} {
		left, _ := filepath.Glob(pattern)
		for _, path := range left {
			sweep(path)
		}
	}
}

// sweep removes what nobody uses. Whoever unpacks a backup to look at it does not
// hold the home, but that directory.
func sweep(path string) {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		_ = os.RemoveAll(path)
	}
}
