package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// CreateBackup makes a backup of a home on which no kernel runs. ErrRunning: a
// kernel runs, and has to make the backup.
func CreateBackup(
	ctx context.Context, home *config.Home, version, file string, secrets bool,
) (info backup.Info, err error) {
	err = whileLocked(home, func() error {
		if _, err := os.Stat(home.Database()); err != nil {
			return fmt.Errorf("nothing to back up: no kernel has run on %s yet", home.Path())
		}
		store := func(ctx context.Context, path string) error { return sqlite.Copy(ctx, home.Database(), path) }
		info, err = backup.Create(ctx, backup.Source{Home: home, Version: version, Copy: store, Secrets: secrets}, file)
		return withBackups(home, err)
	})
	return info, err
}

// RestoreBackup restores a backup on a home on which no kernel runs, and keeps the
// files that it replaces.
func RestoreBackup(ctx context.Context, home *config.Home, file string, storeOnly bool) (r backup.Restored, err error) {
	err = whileLocked(home, func() error {
		r, err = backup.Restore(ctx, home, file, storeOnly)
		return err
	})
	if errors.Is(err, ErrRunning) {
		return r, fmt.Errorf("nothing was restored: %w (%s): stop it first", ErrRunning, home.Path())
	}
	return r, err
}

// whileLocked runs f while it holds the lock of the home, so no kernel can run.
func whileLocked(home *config.Home, f func() error) error { return lockedFor(home, heldByBackup, f) }

// WhileMoving runs f, which moves the state of the home into a cluster or out of it, while
// no kernel can run. ErrRunning: one runs.
func WhileMoving(home *config.Home, f func() error) error { return lockedFor(home, heldToMove, f) }

func lockedFor(home *config.Home, holder string, f func() error) error {
	lock, err := lockHome(home, holder)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := finishRestore(home); err != nil {
		return err
	}
	return f()
}

// finishRestore completes an interrupted restore and removes leftovers. The caller
// holds the lock of the home.
func finishRestore(home *config.Home) error {
	if _, err := backup.Finish(home); err != nil {
		return err
	}
	backup.Sweep(home)
	return nil
}

// keepBackups keeps the nightly backups of a store that was removed.
func (i *Installation) keepBackups() error {
	if _, err := os.Stat(i.options.Home.Database()); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept, err := backup.KeepNightly(i.options.Home)
	if err != nil {
		return fmt.Errorf("keep the backups of the removed store: %w", err)
	}
	if len(kept) > 0 {
		i.log.Warn("the store is missing: creating a new one, and keeping the nightly backups of the old one under new names",
			"newest", kept[0])
	}
	return nil
}

// withBackups adds a list of the backups to an error about a damaged store.
func withBackups(home *config.Home, err error) error {
	if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrNewer) {
		return err
	}
	return fmt.Errorf("%w\n%s", err, BackupHint(home))
}

// BackupHint tells the user how to restore the store.
func BackupHint(home *config.Home) string {
	found := backup.List(home)
	const check = "`switchboard doctor` checks the store without a kernel."
	if len(found) == 0 {
		return "There is no backup in " + home.Backups() +
			". If you have one elsewhere: `switchboard backup restore FILE`. " + check
	}
	newest := found[0]
	hint := fmt.Sprintf("The newest backup is of %s: `switchboard backup restore %s` (replaced files are kept).",
		newest.At.Local().Format("2006-01-02 15:04"), newest.File)
	if len(found) > 1 {
		hint += fmt.Sprintf(" There are %d more: `switchboard backup list`.", len(found)-1)
	}
	return hint + " " + check
}

// createBackup makes a backup beside the running kernel. Home and Copy of the source
// are those of the kernel.
func (i *Installation) createBackup(ctx context.Context, file string, s backup.Source) (backup.Info, error) {
	i.backupMu.Lock() // two at once would only be slower
	defer i.backupMu.Unlock()
	defer i.Kernel.RestFiles()()
	s.Home, s.Version, s.Copy, s.Gentle = i.options.Home, i.options.Version, i.Kernel.Snapshot, true
	return backup.Create(ctx, s, file)
}

func (i *Installation) newKeeper() *backup.Keeper {
	return &backup.Keeper{
		Home: i.options.Home, Log: i.log.Named("backup"),
		Settings: func() (config.Backup, *time.Location) {
			c := i.files.live.Config()
			zone, _ := c.Zone(config.ThisMachine())
			return c.Backup, zone
		},
		Make: func(ctx context.Context, file string) (backup.Info, error) {
			return i.createBackup(ctx, file, backup.Source{FilesBeside: true})
		},
	}
}
