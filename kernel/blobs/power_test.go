package blobs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/store/blobfiles"
	"github.com/switchboard-run/switchboard/store/powercut"
)

// What a disk may have of a file.
const (
	undecided = "undecided"
	durable   = "durable"
)

// change is a change of what the disk may have of a file, at a position of its record.
type change struct {
	at    int
	hash  string
	state string
}

// recorder are files that record when the disk has them.
type recorder struct {
	blobfiles.Dir
	disk    *powercut.Disk
	changes []change
}

func (f *recorder) note(hash, state string) {
	f.changes = append(f.changes, change{f.disk.Position(), hash, state})
}

func (f *recorder) Create() (blobs.NewFile, error) {
	n, err := f.Dir.Create()
	return &recordedFile{n, f}, err
}

func (f *recorder) Remove(hash string) error {
	f.note(hash, undecided)
	return f.Dir.Remove(hash)
}

type recordedFile struct {
	blobs.NewFile
	of *recorder
}

func (f *recordedFile) Keep(hash string) error {
	if f.of.after(len(f.of.changes))[hash] != durable {
		f.of.note(hash, undecided)
	}
	err := f.NewFile.Keep(hash)
	f.of.note(hash, durable)
	return err
}

// after returns what the disk may have after some of the changes.
func (f *recorder) after(changes int) map[string]string {
	states := map[string]string{}
	for _, c := range f.changes[:changes] {
		states[c.hash] = c.state
	}
	return states
}

// sample is a file of the power cuts: its bytes are its number.
func sample(i int) string { return fmt.Sprint("file ", i) }

// The power fails at any point while files are put, named and swept: the journal names no
// file that is missing, an event that was accepted has its file, and what nothing keeps is
// removed.
func TestPowerLossBetweenAFileAndItsCommit(t *testing.T) {
	cuts := 20
	if testing.Short() {
		cuts = 10
	}
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		disk := powercut.Watch(t, w.Dir())
		w.Restart() // opens the store on the disk
		s, dir := store(w)
		files := &recorder{Dir: dir, disk: disk}
		s.Files = files
		x := w.Extension(bus.Actor{ID: "x", Publish: []string{"x.*"}, Blobs: true})
		r := rand.New(rand.NewPCG(5, 8)) //nolint:gosec // reproducible
		texts, named := map[string]string{}, map[string]int{}
		for range 30 {
			text := sample(r.IntN(12))
			hash := put(w, s, x.Running(), text)
			texts[hash] = text
			if r.IntN(4) == 0 {
				x.Must("", naming("x.said", hash))
				if _, before := named[hash]; !before {
					named[hash] = disk.Position()
				}
			}
			if r.IntN(5) == 0 {
				w.Wait(2 * blobs.Hold)
				sweep(w, s)
			}
		}
		for i := range cuts {
			n := r.IntN(len(files.changes))
			at := files.changes[n].at + r.IntN(4)
			for n < len(files.changes) && (files.changes[n].at < at || files.changes[n].at == at && r.IntN(2) == 0) {
				n++
			}
			left := t.TempDir()
			if err := disk.Cut(at, r, left); err != nil {
				t.Fatal(err)
			}
			there := blobfiles.Dir(filepath.Join(left, "blobs"))
			for hash, state := range files.after(n) {
				if state == durable || r.IntN(2) == 0 {
					path := there.Path(hash)
					if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(texts[hash]), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.RestartIn(left)
			judge(w, there, fmt.Sprintf("cut %d at %d", i, at), texts, func(hash string) bool {
				accepted, is := named[hash]
				return is && accepted <= at
			})
			w.RestartIn(t.TempDir()) // no process has it open then
		}
	})
}

// judge expects that every file that the journal knows is in a directory, that it knows
// those that must be kept, and that the others can be swept.
func judge(w *kerneltest.World, there blobfiles.Dir, when string, texts map[string]string, mustKeep func(string) bool) {
	t := w.T
	t.Helper()
	known := func() (hashes []string) {
		w.Read(func(r journal.Reader) error {
			for hash := range texts {
				b, err := r.Blob(hash)
				if err != nil {
					return err
				}
				if b != nil {
					hashes = append(hashes, hash)
				}
			}
			return nil
		})
		slices.Sort(hashes)
		return hashes
	}
	before := known()
	for _, hash := range before {
		if b, err := os.ReadFile(there.Path(hash)); err != nil || string(b) != texts[hash] {
			t.Errorf("%s: the journal knows %q, and its file is %q, %v", when, texts[hash], b, err)
		}
	}
	for hash, text := range texts {
		if mustKeep(hash) && !slices.Contains(before, hash) {
			t.Errorf("%s: %q was accepted with an event and is gone", when, text)
		}
	}
	s := &blobs.Store{Bus: w.Bus, Files: there, Directory: w.Directory}
	w.Wait(2 * blobs.Hold)
	if err := s.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	sweep(w, s)
	var on []string
	if err := filepath.WalkDir(string(there), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			on = append(on, e.Name())
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(on)
	if after := known(); !slices.Equal(on, after) {
		t.Errorf("%s: after a sweep there are %q, and the journal knows %q", when, on, after)
	}
	for hash, text := range texts {
		if mustKeep(hash) && !slices.Contains(on, hash) {
			t.Errorf("%s: %q was swept", when, text)
		}
	}
}

var errKilled = errors.New("killed")

// mortal are files of a kernel that is killed in front of a step: after it nothing is
// done any more, not even what a process does when it fails.
type mortal struct {
	blobs.Files
	left int
}

func (m *mortal) step() error {
	if m.left--; m.left < 0 {
		return errKilled
	}
	return nil
}

func (m *mortal) Create() (blobs.NewFile, error) {
	if err := m.step(); err != nil {
		return nil, err
	}
	f, err := m.Files.Create()
	return &mortalFile{f, m}, err
}

func (m *mortal) Remove(hash string) error {
	if err := m.step(); err != nil {
		return err
	}
	return m.Files.Remove(hash)
}

type mortalFile struct {
	blobs.NewFile
	of *mortal
}

func (f *mortalFile) Write(p []byte) (int, error) {
	if err := f.of.step(); err != nil {
		return 0, err
	}
	return f.NewFile.Write(p)
}

func (f *mortalFile) Keep(hash string) error {
	if err := f.of.step(); err != nil {
		return err
	}
	if err := f.NewFile.Keep(hash); err != nil {
		return err
	}
	return f.of.step() // before the commit
}

func (f *mortalFile) Discard() {
	if f.of.left >= 0 {
		f.NewFile.Discard()
	}
}

// The kernel is killed in front of each step of putting a file and of sweeping it.
func TestKilledAtEachStepOfAFile(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		_, dir := store(w)
		x := w.Extension(bus.Actor{ID: "x", Publish: []string{"x.*"}, Blobs: true})
		texts, named := map[string]string{}, map[string]bool{}
		steps := 0
		for done := false; !done; steps++ {
			files := &mortal{Files: dir, left: steps}
			s := &blobs.Store{Bus: w.Bus, Files: files, Directory: w.Directory}
			for what := range 2 {
				text := fmt.Sprint(what, " of kill ", steps)
				b, err := s.Put(x.Running(), strings.NewReader(text))
				if err != nil && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				if b.Hash != "" {
					texts[b.Hash] = text
				}
				if err == nil && what == 0 {
					x.Must("", naming("x.said", b.Hash))
					named[b.Hash] = true
				}
			}
			w.Wait(2 * blobs.Hold)
			if err := s.Sweep(t.Context()); err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			done = files.left >= 0
			w.Restart()
			left, _ := filepath.Glob(filepath.Join(string(dir), ".unfinished-*"))
			for _, path := range left { // more than an hour ago, by the clock of the test
				if err := os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
					t.Fatal(err)
				}
			}
			judge(w, dir, fmt.Sprintf("killed after %d steps", steps), texts, func(hash string) bool { return named[hash] })
		}
		if steps < 10 || len(named) == 0 {
			t.Errorf("there are %d steps, and %d files are kept", steps, len(named))
		}
	})
}
