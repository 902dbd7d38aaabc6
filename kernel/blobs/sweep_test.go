package blobs_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// manyHeld has the journal hold files of one byte without their bytes on disk.
func manyHeld(w *kerneltest.World, n int) {
	w.Do(func(tx *bus.Tx) error {
		for i := range n {
			b := journal.Blob{Hash: fmt.Sprintf("%064x", i), Size: 1, Owner: "x", CreatedAt: tx.Now}
			if err := tx.HoldBlob(b, "x", tx.Now+blobs.Hold.Microseconds()); err != nil {
				return err
			}
		}
		return nil
	})
}

func stored(w *kerneltest.World) (n int64) {
	w.Read(func(r journal.Reader) (err error) {
		n, err = r.BlobBytes("")
		return err
	})
	return n
}

// removals calls a function before each removal.
type removals struct {
	blobs.Files
	before func()
}

func (r removals) Remove(hash string) error {
	r.before()
	return r.Files.Remove(hash)
}

// Ten thousand files are swept in commits of 500, and messages are accepted in between.
func TestManyFilesAreSweptInSmallCommits(t *testing.T) {
	const all, each = 10_000, 500
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, _ := store(w)
		x := w.Extension(bus.Actor{ID: "x", Publish: []string{"x.*"}})
		manyHeld(w, all)
		w.Wait(blobs.Hold + time.Minute)
		n := 0
		s.Files = removals{s.Files, func() {
			if n%each == 0 {
				if left, want := stored(w), int64(all-n-each); left != want {
					t.Errorf("%d files are removed, and %d are stored, want %d", n, left, want)
				}
				x.Must("", kerneltest.Publish("x.said", nil))
			}
			n++
		}}
		sweep(w, s)
		if n != all || stored(w) != 0 {
			t.Errorf("%d files are removed, %d are stored", n, stored(w))
		}
		if said := len(w.Events("x.said")); said != all/each {
			t.Errorf("%d messages were accepted meanwhile", said)
		}
	})
}

// counting is a context that counts how often it is asked for its end, which a sweep does
// before each commit.
type counting struct {
	context.Context
	asked int
	on    func(asked int) error
}

func (c *counting) Err() error {
	c.asked++
	return c.on(c.asked)
}

// A backup that begins during a sweep ends it, and the next one goes on.
func TestABackupBeginsDuringASweep(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, _ := store(w)
		manyHeld(w, 1200)
		w.Wait(blobs.Hold + time.Minute)
		var release func()
		ctx := &counting{Context: t.Context(), on: func(asked int) error {
			if asked == 2 {
				release = s.Rest()
			}
			if asked > 100 {
				return context.Canceled
			}
			return nil
		}}
		if err := s.Sweep(ctx); err != nil || ctx.asked > 3 {
			t.Errorf("the sweep has tried %d times: %v", ctx.asked, err)
		}
		if n := stored(w); n != 700 {
			t.Errorf("%d files are stored during the backup", n)
		}
		release()
		sweep(w, s)
		if n := stored(w); n != 0 {
			t.Errorf("%d files are left", n)
		}
	})
}
