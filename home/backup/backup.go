// Package backup makes, checks and restores backups of a home.
//
// # What is in one
//
// One file, a tar.gz that any tar can read: the store, config.yaml, the
// dropped-in extensions, and the files that extensions keep in data/. Secrets
// are in it only when that was asked for. Logs, sockets and tokens never are;
// symbolic links and other special files are left out and named. The sums of
// all files are in it (SHA256SUMS).
//
// # Promises
//
// The store is a consistent copy of one moment, taken while messages go on. The
// other files are copied after it, one by one. When Create reports success, the
// backup was read and checked, it is on the disk, and it appeared under its name
// at once; one that failed leaves nothing, one that was killed a directory whose
// name begins with ".unfinished-".
//
// Restore checks everything before it touches anything. What it replaces it
// keeps in a directory of the home. It happens as a whole or not at all: killed
// in between, Finish completes it, which every start of a kernel does first.
//
// Create and Restore of one home must not run beside a kernel on it, except for
// Create on the copy that the kernel itself makes: the caller holds the home.
package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/switchboard-run/switchboard/store/sqlite"
)

// Names in an archive.
const (
	aboutName = "backup.json"
	sumsName  = "SHA256SUMS"
	storeName = "switchboard.db"
)

// Parts of a home, as they are called in the home and in an archive.
const (
	partConfig     = "config.yaml"
	partSecrets    = "secrets.env"
	partExtensions = "extensions"
	partData       = "data"
)

// Extension ends the names of backups.
const Extension = ".tar.gz"

// ErrUnusable says that a file is no whole backup.
var ErrUnusable = errors.New("the backup cannot be used")

// Info is what is known of a backup.
type Info struct {
	File      string    `json:"file"`
	Bytes     int64     `json:"bytes"`
	CreatedAt time.Time `json:"created_at"`
	MadeBy    string    `json:"made_by,omitempty"` // version of the program
	// Parts of the home that it speaks for: restoring takes what it lacks of them
	// away.
	Parts   []string `json:"parts"`
	Secrets bool     `json:"secrets"`
	Files   int      `json:"files"`
	LeftOut []string `json:"left_out,omitempty"` // links and other special files

	StoreVersion int            `json:"store_version"`
	StoreBytes   int64          `json:"store_bytes"`
	Events       int            `json:"events"`
	FirstEvent   *time.Time     `json:"first_event,omitempty"`
	LastEvent    *time.Time     `json:"last_event,omitempty"`
	Unsettled    int            `json:"unsettled"`
	DeadLetters  int            `json:"dead_letters"`
	Sessions     int            `json:"sessions"`
	HistoryRows  int            `json:"history_rows"`
	Keys         map[string]int `json:"keys"` // of extensions, by <extension>/<kind>
}

func (i *Info) describe(c sqlite.Contents) {
	i.StoreVersion, i.Events, i.Unsettled, i.DeadLetters, i.Sessions, i.HistoryRows, i.Keys =
		c.Version, c.Events, c.Unsettled, c.DeadLetters, c.Sessions, c.Rows, c.Keys
	if c.Events > 0 {
		i.FirstEvent, i.LastEvent = &c.FirstEvent, &c.LastEvent
	}
}

// syncFile has a file or directory on the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// place gives a finished file a name that nothing has yet.
func place(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s is there already: name another file", to)
		}
		if _, statErr := os.Lstat(to); statErr == nil { // a file system without links
			return fmt.Errorf("%s is there already: name another file", to)
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	return syncFile(filepath.Dir(to))
}
