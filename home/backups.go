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

// CreateBackup makes a backup of a home on which no kernel runs. ErrRunning says
// that one runs: ask it for the backup.
func CreateBackup(
	ctx context.Context, home *config.Home, version, file string, secrets bool,
) (info backup.Info, err error) {
	err = holding(home, func() error {
		if _, err := os.Stat(home.Database()); err != nil {
			return fmt.Errorf("there is nothing to back up: no kernel has ever run on %s", home.Path())
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
	err = holding(home, func() error {
		r, err = backup.Restore(ctx, home, file, storeOnly)
		return err
	})
	if errors.Is(err, ErrRunning) {
		return r, fmt.Errorf("nothing was restored: %w (%s): stop it first", ErrRunning, home.Path())
	}
	return r, err
}

// holding runs f while no kernel can run on the home.
func holding(home *config.Home, f func() error) error {
	lock, err := lockHome(home, heldByBackup)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := completeHome(home); err != nil {
		return err
	}
	return f()
}

// completeHome completes an interrupted restoration. The caller holds the home.
func completeHome(home *config.Home) error {
	if _, err := backup.Finish(home); err != nil {
		return err
	}
	backup.Sweep(home)
	return nil
}

// keepBackups keeps the backups of a store that was removed.
func (i *Installation) keepBackups() error {
	if _, err := os.Stat(i.options.Home.Database()); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	kept, err := backup.KeepNightly(i.options.Home)
	if err != nil {
		return fmt.Errorf("keep the backups of the store that was here: %w", err)
	}
	if len(kept) > 0 {
		i.log.Warn("there is no store, so a new one begins; the nightly backups of the old one are kept under new names",
			"newest", kept[0])
	}
	return nil
}

// withBackups adds to an error about a damaged store which backups there are.
func withBackups(home *config.Home, err error) error {
	if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrNewer) {
		return err
	}
	return fmt.Errorf("%w\n%s", err, BackupHint(home))
}

// BackupHint says how to get a store back.
func BackupHint(home *config.Home) string {
	found := backup.List(home)
	if len(found) == 0 {
		return "There is no backup in " + home.Backups() + ". If you have one elsewhere: `switchboard backup restore FILE`. `switchboard doctor` looks at the store again without a kernel."
	}
	newest := found[0]
	hint := fmt.Sprintf("The newest backup is of %s: `switchboard backup restore %s` (what it replaces is kept).",
		newest.At.Local().Format("2006-01-02 15:04"), newest.File)
	if len(found) > 1 {
		hint += fmt.Sprintf(" There are %d more: `switchboard backup list`.", len(found)-1)
	}
	return hint + " `switchboard doctor` looks at the store again without a kernel."
}

// createBackup makes a backup beside the running kernel.
func (i *Installation) createBackup(ctx context.Context, file string, secrets bool) (backup.Info, error) {
	i.backing.Lock() // two at once would only be slower
	defer i.backing.Unlock()
	return backup.Create(ctx, backup.Source{
		Home: i.options.Home, Version: i.options.Version, Copy: i.Kernel.Snapshot, Secrets: secrets, Gentle: true,
	}, file)
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
			return i.createBackup(ctx, file, false)
		},
	}
}
