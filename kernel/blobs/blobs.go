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
	// Each calls f with every hash of which there is a file, and removes what was not
	// finished for more than an hour.
	Each(f func(hash string) error) error
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
	cleanEvery = 24  // sweeps
	sweepMost  = 500 // files that one commit looks at
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
	for n := 0; ; n++ {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		err := s.Sweep(ctx)
		if n%cleanEvery == 0 {
			err = errors.Join(err, s.Clean(ctx))
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, journal.ErrClosed) {
			s.Log.Error("remove files that nothing keeps", "error", err)
		}
		timer.Reset(sweepEvery)
	}
}

// Sweep removes the files that nothing keeps. It does nothing while a backup is made.
func (s *Store) Sweep(ctx context.Context) error {
	for after, next := "", ""; ctx.Err() == nil; after = next {
		next = "" // it stays so if a backup has begun
		err := s.removing(func() (gone []string, err error) {
			err = s.Bus.Do(func(tx *bus.Tx) error {
				gone, next, err = tx.SweepBlobs(tx.Now, after, sweepMost)
				return err
			})
			return gone, err
		})
		if err != nil || next == "" {
			return err
		}
	}
	return nil
}

// Clean removes the files that the journal does not know: they were left by a crash, or
// there was no room for them. It does nothing while a backup is made.
func (s *Store) Clean(ctx context.Context) error {
	return s.Files.Each(func(hash string) error {
		if known, err := s.known(ctx, hash); known || err != nil {
			return err
		}
		return s.removing(func() ([]string, error) { // not while one with this hash gets its name
			if known, err := s.known(ctx, hash); known || err != nil {
				return nil, err
			}
			return []string{hash}, nil
		})
	})
}

// removing removes files, unless they must stay for a while.
func (s *Store) removing(choose func() ([]string, error)) error {
	if !s.placing.TryLock() {
		return nil
	}
	defer s.placing.Unlock()
	gone, err := choose()
	if err != nil {
		return err
	}
	for _, hash := range gone {
		err = errors.Join(err, s.Files.Remove(hash))
	}
	return err
}

func (s *Store) known(ctx context.Context, hash string) (known bool, err error) {
	err = s.Bus.View(ctx, func(r journal.Reader) error {
		b, err := r.Blob(hash)
		known = b != nil
		return err
	})
	return known, err
}
