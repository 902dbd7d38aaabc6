package main

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/backup"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// oldBackup is the age from which a backup is too old if the store has changed since.
const oldBackup = 3 * 24 * time.Hour

// longStore is the size from which checking a store is announced.
const longStore = 300 << 20

// openStore reports damage of the running kernel's store.
func (d *diagnosis) openStore(s admin.Status) {
	if s.Damage != "" {
		text, hint, _ := strings.Cut(s.Damage, "\n")
		d.add("Store", levelError, hint, "%s", text)
	}
}

// store checks a closed store.
func (d *diagnosis) store(h *config.Home) {
	info, err := os.Stat(h.Database())
	if err != nil {
		if _, err := os.Stat(h.Database() + "-wal"); err != nil {
			d.add("Store", levelOK, "", "there is no store yet; the first start creates it")
			return
		}
	}
	if info != nil && info.Size() > longStore && d.progress != nil {
		d.progress("Checking the store (%s) ...", humanize.IBytes(uint64(info.Size()))) //nolint:gosec // not negative
	}
	if err := sqlite.Check(h.Database()); err != nil {
		hint := ""
		if errors.Is(err, journal.ErrDamaged) || errors.Is(err, journal.ErrNewer) {
			hint = home.BackupHint(h)
		}
		d.add("Store", levelError, hint, "%s", err)
	} else if info != nil {
		size := humanize.IBytes(uint64(info.Size())) //nolint:gosec // not negative
		d.add("Store", levelOK, "", "%s is intact (%s)", h.Database(), size)
		d.closedFiles(h)
	}
	settings, err := config.Load(h.Config())
	if err != nil || info == nil {
		return
	}
	s := backup.State{Nightly: settings.Backup.Nightly, Newest: newestOf(h)}
	if f := backup.LastFailure(h); f != nil && s.Nightly {
		s.Failure, s.FailedAt = f.Reason, &f.At
	}
	d.backups(s, info.ModTime())
	d.backupFiles(h)
}

func newestOf(h *config.Home) *backup.Found {
	if found := backup.List(h); len(found) > 0 {
		return &found[0]
	}
	return nil
}

// backups checks the backups of a store that last changed at a time.
func (d *diagnosis) backups(s backup.State, changed time.Time) {
	switch {
	case s.Failure != "":
		d.add("Backups", levelError, "a running kernel tries again every hour; `switchboard backup create` tries it now",
			"the nightly backup failed at %s: %s", s.FailedAt.Local().Format("2006-01-02 15:04"), s.Failure)
	case s.Newest == nil && s.Nightly:
		d.add("Backups", levelNote, "`switchboard backup create` makes one; the first nightly one starts two minutes after "+
			"the kernel",
			"there are no backups yet")
	case s.Newest == nil:
		d.add("Backups", levelWarning, "`switchboard backup create` makes one; backup.nightly in config.yaml makes one "+
			"each night",
			"there are no backups, and nightly backups are off")
	case changed.Sub(s.Newest.At) > oldBackup:
		d.add("Backups", levelWarning, "`switchboard backup create` makes one now; nightly ones need a running kernel",
			"the newest is from %s", s.Newest.At.Local().Format("2006-01-02 15:04"))
	default:
		d.add("Backups", levelOK, "", "the newest is from %s (%s)", s.Newest.At.Local().Format("2006-01-02 15:04"),
			humanize.IBytes(uint64(s.Newest.Bytes))) //nolint:gosec // not negative
	}
}
