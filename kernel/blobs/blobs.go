// Package blobs keeps the files that come with messages. The journal knows what keeps
// each file; the bytes are in Files.
//
// # Promises
//
// A file that Put has returned survives a crash and the loss of power. It stays for
// Hold, and as long as an event, a session or a value that was committed names it. What
// nothing keeps is removed by Sweep, first from the journal and then from Files, so that
// the journal never names a file that is not there.
package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// Files stores bytes by their SHA-256, in hexadecimal. It is safe for concurrent use.
type Files interface {
	// Create begins a file.
	Create() (NewFile, error)
	// Open opens a file; fs.ErrNotExist: it is not there.
	Open(hash string) (io.ReadSeekCloser, error)
	// Remove removes a file, if it is there.
	Remove(hash string) error
	// Clean removes the files that known does not know, and what was not finished
	// for more than an hour.
	Clean(known func(hash string) (bool, error)) error
}

// NewFile is a file that is being written. One of Keep and Discard ends it.
type NewFile interface {
	io.Writer
	// Keep gives it its name. When it returns, the file is durable.
	Keep(hash string) error
	Discard()
}

const (
	// Hold is how long a file that was stored is kept by itself.
	Hold       = time.Hour
	sweepEvery = time.Hour
	sweepMost  = 100 // files of one commit
)

// Store is the kernel's store of files. It is safe for concurrent use.
type Store struct {
	Bus       *bus.Bus
	Files     Files
	Directory *directory.Directory
	Log       hclog.Logger

	// placing is held for reading from when a file gets its name until the journal knows
	// it, and while a backup is made; for writing while files are removed.
	placing sync.RWMutex
}

// Put stores what it reads for an extension.
func (s *Store) Put(a *bus.Actor, from io.Reader) (journal.Blob, error) {
	limits := s.Directory.Current().Blobs
	f, err := s.Files.Create()
	if err != nil {
		return journal.Blob{}, err
	}
	defer f.Discard()
	hash := sha256.New()
	size, err := io.Copy(io.MultiWriter(f, hash), io.LimitReader(from, limits.File+1))
	if err != nil {
		return journal.Blob{}, err
	}
	if size > limits.File {
		return journal.Blob{}, tooMuch("a file", limits.File, "file")
	}
	b := journal.Blob{Hash: hex.EncodeToString(hash.Sum(nil)), Size: size, Owner: a.ID}
	s.placing.RLock()
	defer s.placing.RUnlock()
	if err := f.Keep(b.Hash); err != nil {
		return b, err
	}
	return b, s.Bus.DoAs(a, nil, func(tx *bus.Tx) error {
		b.CreatedAt = tx.Now
		if err := withinLimits(tx, b, limits); err != nil {
			return err
		}
		return tx.HoldBlob(b, a.ID, tx.Now+Hold.Microseconds())
	})
}

// withinLimits refuses a new file for which there is no room.
func withinLimits(r journal.Reader, b journal.Blob, limits directory.BlobLimits) error {
	known, err := r.Blob(b.Hash)
	if err != nil || known != nil {
		return err
	}
	own, err := r.BlobBytes(b.Owner)
	if err != nil {
		return err
	}
	all, err := r.BlobBytes("")
	switch {
	case err != nil:
		return err
	case own+b.Size > limits.Extension:
		return tooMuch("the files of "+b.Owner, limits.Extension, "extension")
	case all+b.Size > limits.Total:
		return tooMuch("all files together", limits.Total, "total")
	}
	return nil
}

func tooMuch(what string, limit int64, setting string) error {
	return fmt.Errorf("%w: %s may have %d MiB (files.%s in the configuration)", contract.ErrTooLarge, what, limit>>20,
		setting)
}

// Open opens a file that the actor may read, under a lease or nil. The name is its hash
// or, within the session of the lease, at least contract.ReferenceDigits of it.
func (s *Store) Open(ctx context.Context, a *bus.Actor, l *bus.Lease, name string,
) (b journal.Blob, f io.ReadSeekCloser, err error) {
	err = s.Bus.View(ctx, func(r journal.Reader) error {
		b, err = bus.FindBlob(r, a, l, name)
		return err
	})
	if err != nil {
		return b, nil, err
	}
	if f, err = s.Files.Open(b.Hash); err != nil {
		return b, nil, fmt.Errorf("%w: the file %s is lost: `switchboard doctor` says more: %w", contract.ErrNotFound,
			b.Hash, err)
	}
	return b, f, nil
}

// Rest keeps every file where it is, for a backup, until release is called.
func (s *Store) Rest() (release func()) {
	s.placing.RLock()
	return s.placing.RUnlock
}

// Run sweeps until ctx ends.
func (s *Store) Run(ctx context.Context) {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
			s.Log.Error("remove files that nothing keeps", "error", err)
		}
		timer.Reset(sweepEvery)
	}
}

// Sweep removes the files that nothing keeps. During a backup it does nothing.
func (s *Store) Sweep(ctx context.Context) error {
	if !s.placing.TryLock() {
		return nil
	}
	defer s.placing.Unlock()
	for more := true; more; {
		var gone []string
		if err := s.Bus.Do(func(tx *bus.Tx) (err error) {
			gone, err = tx.SweepBlobs(tx.Now, sweepMost)
			return err
		}); err != nil {
			return err
		}
		for _, hash := range gone {
			if err := s.Files.Remove(hash); err != nil {
				return err
			}
		}
		more = len(gone) == sweepMost
	}
	return s.Files.Clean(func(hash string) (known bool, err error) {
		err = s.Bus.View(ctx, func(r journal.Reader) error {
			b, err := r.Blob(hash)
			known = b != nil
			return err
		})
		return known, err
	})
}
