// Package backup makes, checks and restores backups of a home.
//
// # Content
//
// One file, a tar.gz that any tar can read: the store, config.yaml, the
// dropped-in extensions, the files of extensions in data/, and the files of
// messages in blobs/. Secrets are included on request only; logs, sockets and
// tokens never. Symbolic links and other special files are skipped and listed.
// SHA256SUMS has the sums of all files.
//
// A nightly backup leaves the files of messages out and lists them. The directory
// files/ beside the backups keeps each of them once, as a copy.
//
// # Promises
//
// The store is a consistent snapshot, taken while messages go on. The other files
// are copied after it, one by one. When Create succeeds, the backup was read back
// and checked, is synced, and appeared under its name atomically. A failed one
// leaves nothing; a killed one leaves a directory named ".unfinished-*".
//
// Restore checks everything before it changes anything, and keeps the replaced
// files in a directory of the home. It is atomic: after a kill, Finish completes
// it, and every start of a kernel calls Finish first.
//
// The caller of Create and Restore holds the lock of the home. Only the kernel's
// own Create, on a copy that it makes itself, may run beside it.
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

// Parts of a home: their names in the home and in an archive.
const (
	partConfig     = "config.yaml"
	partSecrets    = "secrets.env"
	partServers    = "mcp.json" // may have secrets
	partConsent    = "consent.json"
	partExtensions = "extensions"
	partData       = "data"
	partFiles      = "blobs"
)

// Extension is the file name extension of backups.
const Extension = ".tar.gz"

// ErrUnusable means that a file is not a complete, valid backup.
var ErrUnusable = errors.New("the backup cannot be used")

// Info describes a backup.
type Info struct {
	File      string    `json:"file"`
	Bytes     int64     `json:"bytes"`
	CreatedAt time.Time `json:"created_at"`
	MadeBy    string    `json:"made_by,omitempty"` // version of the program
	// Parts of the home that it covers: a restore also removes what it lacks of them.
	Parts   []string `json:"parts"`
	Secrets bool     `json:"secrets"`
	Files   int      `json:"files"`
	LeftOut []string `json:"left_out,omitempty"` // links and other special files
	// Lost are the files of messages that the store names and that are missing or
	// damaged, by their hashes. Verify finds them.
	Lost []string `json:"lost,omitempty"`
	// Beside are the files of messages that are not in the backup but in files/ beside it.
	Beside []string `json:"beside,omitempty"`

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

// Tests replace these to fail in the middle.
var (
	rename = os.Rename
	remove = os.Remove
)

// syncFile syncs a file or directory to the disk.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// place gives a finished file its name, and fails if the name exists.
func place(from, to string) error {
	if err := os.Link(from, to); err != nil {
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s exists: choose another name", to)
		}
		if _, statErr := os.Lstat(to); statErr == nil { // a file system without links
			return fmt.Errorf("%s exists: choose another name", to)
		}
		if err := os.Rename(from, to); err != nil {
			return err
		}
	}
	return syncFile(filepath.Dir(to))
}
