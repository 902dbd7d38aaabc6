// Package commitlog lets several kernels share a journal: a fenced commit log is the
// truth, and each node's store file is a copy of the state that the log leads to.
//
// The log of a cell (one household, one journal) has one writer at a time. Acquire makes
// a node the writer: it raises the epoch, with a new random incarnation, and from then
// on nothing of an earlier writer is appended. Each entry is a group of updates that the
// store has applied and not committed yet. It names its predecessor by hash, so a reader
// knows a gap or another branch.
//
// # Promises
//
// An entry that Append reported with nil is durable, and every later Acquire sees it.
// After an append was tried its outcome is success, or unknown, which Append resolves
// itself, or fenced. It is never "not appended": the members of a group are never
// retried one by one, and their callers are never told that nothing happened. Safety
// rests on the fence alone, not on a lease or a clock.
//
// A Log that loses durable entries (PostgreSQL promoted a standby that lagged) shows
// it: the position of a store is no longer in the log. Package sqlite then discards its
// file and logs doubts as the new writer's first entry.
package commitlog

import (
	"context"
	"errors"
	"io"
	"time"
)

var (
	// ErrTruncated means that the entries that were asked for are no longer in the log:
	// begin with the snapshot.
	ErrTruncated = errors.New("the log was truncated")
	// ErrBroken means that an entry does not follow its predecessor, or is damaged.
	ErrBroken = errors.New("the log does not fit together")
	// ErrNone means that there is no snapshot, or no such file.
	ErrNone = errors.New("the log has none")
	// ErrEmpty means that a log has no entries, and a copy that follows it has.
	ErrEmpty = errors.New("the log of the cell is empty, and this node has a copy with entries. Does the connection " +
		"string lead to the right database, or was the cell deleted? To begin with nothing, move the copy away")
	// ErrUntried means that nothing was sent, so the entry cannot be appended later. Other
	// errors of Steps.TryAppend leave the outcome unknown.
	ErrUntried = errors.New("nothing was sent to the log")
)

// State describes a log.
type State struct {
	Position              // of the newest entry; zero: the log is empty
	Epoch       int64     // rises with each Acquire
	Incarnation [16]byte  // of the writer; random for each Acquire
	Node        string    // the writer's
	Schema      int       // of the newest entry; 0: the log is empty
	First       int64     // the oldest entry that Read still returns; 0: the log is empty
	Snapshot    *Position // of the newest snapshot; nil: none
}

// Log is the commit log of one cell. All methods are safe for concurrent use.
type Log interface {
	// Acquire makes the node the only writer. An append of an earlier writer that has not
	// happened yet never happens, and State of the tenure includes all that have.
	Acquire(ctx context.Context, node string) (Tenure, error)
	// Head returns the state of the log. It does not show an entry that waits for a
	// synchronous standby, unless the server crashed meanwhile.
	Head(ctx context.Context) (State, error)
	// Read calls each for the entries after a position, in order, up to the newest one,
	// and returns the first error of each. It shows only what is safe: not what waits for
	// a synchronous standby, and after a crash of the server it waits for that, too.
	// ErrTruncated: the next entry is gone. Read checks no hashes: see Check.
	Read(ctx context.Context, after int64, each func(Entry) error) error

	// PutSnapshot publishes the state at a position, in one fenced step after all of it is
	// durable.
	PutSnapshot(ctx context.Context, t Tenure, at Position, r io.Reader) error
	// Upload stores a state for Replace. Nothing shows it.
	Upload(ctx context.Context, r io.Reader) (Upload, error)
	// Replace appends an entry of kind Snapshot and publishes what was uploaded as the state
	// that it leads to, in one fenced step. Its errors are those of Tenure.Append.
	Replace(ctx context.Context, t Tenure, e Entry, u Upload) error
	// Snapshot opens the newest snapshot. ErrNone: there is none.
	Snapshot(ctx context.Context) (Position, io.ReadCloser, error)
	// Truncate removes the entries before a position, none after the snapshot's, in a
	// fenced step.
	Truncate(ctx context.Context, t Tenure, before int64) error
}

// Upload is a state that was stored and is not published.
type Upload struct{ ID, Size, Parts int64 }

// Blobs keeps the bytes of files by their SHA-256 in hexadecimal.
type Blobs interface {
	// PutBlob returns when the bytes are durable. It checks the hash.
	PutBlob(ctx context.Context, hash string, r io.Reader) error
	// Blob opens a file. ErrNone: it is not there.
	Blob(ctx context.Context, hash string) (io.ReadCloser, error)
	// DeleteBlob notes that the newest state does not need the file any more. It may stay for a while,
	// because a restore at an earlier point may need it.
	DeleteBlob(ctx context.Context, hash string) error
}

// Tenure is the time in which one node is the writer. Its end is final.
type Tenure interface {
	// State is that of the log when the tenure began: its own epoch and incarnation, and
	// the position that the first entry follows.
	State() State
	// Append appends a sealed entry to its predecessor. It returns nil when the entry is
	// durable; an error of class journal.ErrFenced when the tenure is over, whether the
	// entry is in the log or not; any other error, of a class of package journal, only if
	// nothing was sent. It resolves an unknown outcome itself, for as long as the tenure
	// lasts, and is called by one goroutine.
	Append(e Entry) error
	// Confirm returns nil if this was still the writer at a moment after the call began.
	// Like Append it does not return while that is unknown, unless ctx ends. It may be
	// called while Append runs.
	Confirm(ctx context.Context) error
	// LeaseUntil is the time until which no other node takes over by itself. After it, a
	// reader asks Confirm. It is a hint for speed and manners, never for safety.
	LeaseUntil() time.Time
	// Release ends the tenure, and lets another node take over at once if ctx allows to
	// say so. Append and Confirm that wait return journal.ErrFenced. It may be called
	// more than once.
	Release(ctx context.Context) error
}
