package blobs_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/blobs"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/store/blobfiles"
)

func store(w *kerneltest.World) (*blobs.Store, blobfiles.Dir) {
	dir := blobfiles.Dir(filepath.Join(w.T.TempDir(), "blobs"))
	w.Know(func(s *directory.Snapshot) {
		s.Blobs = directory.BlobLimits{File: 1 << 20, Extension: 2 << 20, Total: 3 << 20}
	})
	return &blobs.Store{Bus: w.Bus, Files: dir, Directory: w.Directory, Log: hclog.NewNullLogger()}, dir
}

func put(w *kerneltest.World, s *blobs.Store, a *bus.Actor, text string) string {
	w.T.Helper()
	b, err := s.Put(a, strings.NewReader(text))
	if err != nil {
		w.T.Fatal(err)
	}
	return b.Hash
}

func read(w *kerneltest.World, s *blobs.Store, a *bus.Actor, l *bus.Lease, name string) (string, error) {
	_, f, err := s.Open(w.T.Context(), a, l, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return string(b), err
}

func sweep(w *kerneltest.World, s *blobs.Store) {
	w.T.Helper()
	if err := s.Sweep(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
}

func naming(topic, hash string) *busv1.Effect {
	e := kerneltest.Publish(topic, map[string]string{})
	e.GetPublish().Blobs = []string{hash}
	return e
}

func TestAFileIsSweptWhenNothingKeepsIt(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, dir := store(w)
		x := w.Extension(bus.Actor{ID: "x", Publish: []string{"x.*"}, Blobs: true})
		held, named := put(w, s, x.Running(), "held"), put(w, s, x.Running(), "named")
		x.Must("", naming("x.said", named))
		w.Wait(blobs.Hold - time.Minute)
		sweep(w, s)
		for _, hash := range []string{held, named} {
			if _, err := read(w, s, x.Running(), nil, hash); err != nil {
				t.Errorf("within the hour: %v", err)
			}
		}
		w.Wait(2 * time.Minute)
		release := s.Rest()
		sweep(w, s)
		if _, err := dir.Open(held); err != nil {
			t.Errorf("a backup is being made: %v", err)
		}
		release()
		sweep(w, s)
		if _, err := dir.Open(held); err == nil {
			t.Error("a file that nothing keeps is still there")
		}
		if _, err := dir.Open(named); err != nil {
			t.Errorf("a file that an event names: %v", err)
		}
		if _, err := x.Commits("", naming("x.said", held)); !errors.Is(err, contract.ErrNotFound) {
			t.Errorf("naming a file that is gone: %v", err)
		}
		x.Must("", kerneltest.Publish("x.said", nil)) // the newest event stays
		w.Wait(31 * 24 * time.Hour)
		sweep(w, s)
		if _, err := dir.Open(named); err == nil {
			t.Error("the event is gone, and its file is still there")
		}
	})
}

// A put that was killed before its commit leaves a file that the journal does not know.
func TestAFileThatTheJournalDoesNotKnowIsRemoved(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, dir := store(w)
		f, err := dir.Create()
		if err != nil {
			t.Fatal(err)
		}
		unknown := strings.Repeat("ab", 32)
		if err := f.Keep(unknown); err != nil {
			t.Fatal(err)
		}
		put(w, s, w.Extension(bus.Actor{ID: "x"}).Running(), "known")
		release := s.Rest()
		if err := s.Clean(w.T.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := dir.Open(unknown); err != nil {
			t.Errorf("a backup is being made: %v", err)
		}
		release()
		if err := s.Clean(w.T.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := dir.Each(func(string) error { n++; return nil }); err != nil || n != 1 {
			t.Errorf("%d files are left, %v", n, err)
		}
		if _, err := dir.Open(unknown); err == nil {
			t.Error("it is still there")
		}
	})
}

func TestOnlyThoseWhoWereGivenAFileReadIt(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, _ := store(w)
		telegram, orchestrator := w.Channel("telegram"), w.Agent("orchestrator")
		telegram.Admits("anna")
		stranger := w.Extension(bus.Actor{ID: "stranger", Publish: []string{"stranger.*"}, Blobs: true})
		cat := put(w, s, telegram.Running(), "a cat")
		if _, err := stranger.Commits("", naming("stranger.said", cat)); !errors.Is(err, contract.ErrNotFound) {
			t.Errorf("a stranger names it: %v", err)
		}
		if _, err := read(w, s, stranger.Running(), nil, cat); !errors.Is(err, contract.ErrNotFound) {
			t.Errorf("a stranger reads it: %v", err)
		}
		telegram.Reports(contract.UserMessage{UserID: "anna", ConversationID: "anna", Attachments: []contract.Attachment{
			{Kind: contract.KindImage, Name: "cat.jpg", Blob: cat},
		}})
		turn := orchestrator.Hears("[image " + cat[:6] + ": cat.jpg]")
		l, err := w.Bus.Lease(orchestrator.Running(), turn.Delivery.GetToken())
		if err != nil {
			t.Fatal(err)
		}
		w.Wait(2 * blobs.Hold)
		sweep(w, s)
		for _, name := range []string{cat, cat[:6], cat[:20]} {
			if text, err := read(w, s, orchestrator.Running(), l, name); text != "a cat" || err != nil {
				t.Errorf("the agent reads %q as %s: %v", text, name, err)
			}
		}
		for _, name := range []string{"", cat[:5], "ffffff", cat + "0", "%", "' OR 1"} {
			if _, err := read(w, s, orchestrator.Running(), l, name); !errors.Is(err, contract.ErrNotFound) {
				t.Errorf("the agent reads %q: %v", name, err)
			}
		}
		if _, err := read(w, s, orchestrator.Running(), nil, cat); !errors.Is(err, contract.ErrNotFound) {
			t.Errorf("the agent reads it outside of the session: %v", err)
		}
		turn.Answers("a fine cat")
		telegram.Shows("anna: a fine cat")
		if err := w.Bus.Do(func(tx *bus.Tx) error { return tx.DeleteSession(l.Session) }); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheRoomForFilesIsLimited(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, dir := store(w)
		x := w.Extension(bus.Actor{ID: "x", Blobs: true}).Running()
		y := w.Extension(bus.Actor{ID: "y", Blobs: true}).Running()
		z := w.Extension(bus.Actor{ID: "z", Blobs: true}).Running()
		fill := func(a *bus.Actor, c byte, size int) error {
			_, err := s.Put(a, bytes.NewReader(bytes.Repeat([]byte{c}, size)))
			return err
		}
		for what, c := range map[string]struct {
			err  error
			full bool
		}{
			"a file that is as large as allowed":   {fill(x, 1, 1<<20), false},
			"a file that is larger":                {fill(x, 2, 1<<20+1), true},
			"the second one of x":                  {fill(x, 3, 1<<20), false},
			"the third one of x":                   {fill(x, 4, 1), true},
			"one that is there already":            {fill(x, 1, 1<<20), false},
			"one of y":                             {fill(y, 5, 1<<20), false},
			"one of z, and all have their room":    {fill(z, 6, 1), true},
			"one of z that another one has stored": {fill(z, 5, 1<<20), false},
		} {
			if errors.Is(c.err, contract.ErrTooLarge) != c.full || c.err != nil != c.full {
				t.Errorf("%s: %v", what, c.err)
			}
		}
		if err := s.Clean(w.T.Context()); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := dir.Each(func(string) error { n++; return nil }); err != nil || n != 3 {
			t.Errorf("%d files, %v", n, err)
		}
	})
}

func TestAValueKeepsItsFile(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		t := w.T
		s, dir := store(w)
		x := w.Extension(bus.Actor{ID: "x", Blobs: true})
		hash := put(w, s, x.Running(), "kept")
		with := func(text string, hashes ...string) *busv1.Effect {
			return &busv1.Effect{Kind: &busv1.Effect_Put{Put: &busv1.Put{Key: "k", Value: []byte(text), Blobs: hashes}}}
		}
		x.Must("", with("one", hash))
		w.Wait(2 * blobs.Hold)
		x.Must("", with("two", hash)) // kept by the value that it replaces
		sweep(w, s)
		if text, err := read(w, s, x.Running(), nil, hash); text != "kept" || err != nil {
			t.Errorf("the file is %q, %v", text, err)
		}
		x.Must("", with("three"))
		sweep(w, s)
		if _, err := dir.Open(hash); err == nil {
			t.Error("the value is replaced, and its file is still there")
		}
	})
}
