package backup

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/home/config"
)

const (
	nightlyPrefix = "nightly-"
	manualPrefix  = "backup-"
	stampLayout   = "20060102T150405Z"
)

// Kinds of backups.
const (
	KindNightly   = "nightly"
	KindManual    = "manual"
	KindMigration = "migration" // the store alone, before a migration
)

// Found is a backup in the home, judged by its file name alone.
type Found struct {
	File  string    `json:"file"`
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"`
	Bytes int64     `json:"bytes"`
}

// Name returns an unused name for a manual backup in the home.
func Name(home *config.Home, now time.Time) string {
	first := filepath.Join(home.Backups(), manualPrefix+now.UTC().Format(stampLayout))
	name := first + Extension
	for n := 2; exists(name); n++ { // in the same second
		name = fmt.Sprintf("%s-%d%s", first, n, Extension)
	}
	return name
}

func nightlyName(home *config.Home, now time.Time) string {
	return filepath.Join(home.Backups(), nightlyPrefix+now.UTC().Format(stampLayout)+Extension)
}

// List returns the backups in the home, the newest first.
func List(home *config.Home) (found []Found) {
	found = []Found{}
	add := func(pattern, kind string) {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			at := info.ModTime()
			if kind == KindNightly {
				stamp := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), nightlyPrefix), Extension)
				if at, err = time.Parse(stampLayout, stamp); err != nil {
					kind = KindManual // a user renamed a file
				}
			}
			found = append(found, Found{File: file, Kind: kind, At: at.UTC(), Bytes: info.Size()})
		}
	}
	add(filepath.Join(home.Backups(), nightlyPrefix+"*"+Extension), KindNightly)
	add(filepath.Join(home.Backups(), manualPrefix+"*"+Extension), KindManual)
	add(home.Database()+".v*.backup", KindMigration)
	slices.SortStableFunc(found, func(a, b Found) int {
		return cmp.Or(b.At.Compare(a.At), strings.Compare(b.File, a.File))
	})
	return found
}
