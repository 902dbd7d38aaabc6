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

// Restored is the result of a restore.
type Restored struct {
	Info
	// Before is the directory with the replaced files; empty: there were none.
	Before string `json:"kept_in,omitempty"`
}

const (
	restoring = "restoring" // the directory of a checked backup that Finish moves into the home
	planName  = "plan.json"
	// KeptPrefix begins the names of directories with replaced files.
	KeptPrefix = "before-restore-"
)

// plan lists the moves of a restore.
type plan struct {
	Before string   // directory in the home for the replaced files
	Away   []string // names in the home to move there
	New    []string // names to move into the home
}

// Restore replaces the parts of the home that the backup covers, or only the
// store. The caller holds the lock of the home.
func Restore(ctx context.Context, home *config.Home, file string, storeOnly bool) (r Restored, err error) {
	if _, err := Finish(home); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(home.Path(), unfinished)
	if err != nil {
		return r, fmt.Errorf("restore %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	var outside []string
	if r.Info, outside, err = unpack(ctx, file, dir, 0); err == nil {
		r.Lost, err = fetch(newCopier(ctx, 0, false), home, file, dir, outside)
	}
	if err != nil {
		return r, fmt.Errorf("nothing was restored: %w", err)
	}
	if storeOnly { // with the files that it names
		r.Parts = slices.DeleteFunc(r.Parts, func(part string) bool { return part != storeName && part != partFiles })
	}
	if err := prepare(dir, r.Parts); err != nil {
		return r, fmt.Errorf("nothing was restored: prepare %s: %w", file, err)
	}
	if err := rename(dir, filepath.Join(home.Path(), restoring)); err != nil {
		return r, fmt.Errorf("nothing was restored: %w", err)
	}
	// From here on, Finish completes the restore. Sync that before any move.
	if err := syncFile(home.Path()); err != nil {
		return r, fmt.Errorf("restore %s: %w; the next start completes it", file, err)
	}
	r.Before, err = Finish(home)
	return r, err
}

// prepare makes the unpacked files ready to be moved, writes the plan and syncs all.
func prepare(dir string, parts []string) error {
	store := filepath.Join(dir, storeName)
	if err := sqlite.MarkUncertain(store); err != nil {
		return err
	}
	if err := sqlite.Compact(store); errors.Is(err, journal.ErrDamaged) { // other errors only leave it larger
		return err
	}
	p := plan{Before: KeptPrefix + time.Now().UTC().Format(stampLayout)}
	for n, stamp := 2, p.Before; exists(filepath.Join(filepath.Dir(dir), p.Before)); n++ {
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
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, syncFile(path))
	})
}

// Finish completes an interrupted restore, if there is one, and returns the
// directory with the replaced files. It may be interrupted and repeated.
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
		return before, fmt.Errorf("complete the restore in %s: %w; the replaced files are in %s",
			dir, err, filepath.Join(home.Path(), p.Before))
	}
	return before, nil
}

func (p *plan) finish(home, dir string) (before string, err error) {
	before = filepath.Join(home, p.Before)
	if err := os.Mkdir(before, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return before, err
	}
	for _, name := range p.Away {
		if slices.Contains(p.New, name) && !exists(filepath.Join(dir, name)) {
			continue // the new one is already in the home
		}
		if err := putAway(filepath.Join(home, name), filepath.Join(before, name)); err != nil {
			return before, err
		}
	}
	// Move all old files before any new one: the log of the old store would destroy
	// a new store beside it.
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
	if os.Remove(before) == nil { // it was empty
		before = ""
	}
	done := filepath.Join(home, unfinished+"restored")
	if err := errors.Join(os.RemoveAll(done), rename(dir, done)); err != nil {
		return before, err
	}
	return before, os.RemoveAll(done)
}

// putAway moves a file that is replaced, if it exists. If an earlier attempt moved
// it, a process that opened the home since made the present one: mostly an empty
// directory.
func putAway(from, to string) error {
	if exists(to) {
		if unix.Rmdir(from) == nil {
			return nil
		}
		for n, first := 2, to; exists(to); n++ {
			to = fmt.Sprintf("%s-%d", first, n)
		}
	}
	if err := rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Sweep removes what killed processes left. The caller holds the lock of the home.
func Sweep(home *config.Home) {
	for _, pattern := range []string{
		filepath.Join(home.Path(), unfinished+"*"), filepath.Join(home.Path(), sqlite.InspectPrefix+"*"),
		filepath.Join(home.Backups(), unfinished+"*"), filepath.Join(home.Backups(), sqlite.InspectPrefix+"*"),
	} {
		left, _ := filepath.Glob(pattern)
		for _, path := range left {
			sweep(path)
		}
	}
}

// sweep removes a directory that no process uses. Verify does not hold the lock of
// the home, but locks the directory in which it unpacks.
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
