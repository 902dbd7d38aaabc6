package host_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestWithoutAValidTokenNothingIsServed(t *testing.T) {
	w := newWorld(t)
	old := w.admit(bus.Actor{ID: "notes"})
	if _, err := old.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	w.host.Gone("notes", old.actor.Generation)
	fresh := w.admit(bus.Actor{ID: "notes"})
	if _, err := fresh.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*instance{
		"none": w.client(nil, ""), "a wrong one": w.client(nil, strings.Repeat("0", 48)), "one of an older generation": old,
	} {
		_, err := g.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "k"})
		if !errors.Is(contract.FromStatus(err), contract.ErrStale) {
			t.Errorf("%s: a key is read: %v", name, err)
		}
		if _, err := g.commit("", kerneltest.PutAt("k", "v", 0)); !errors.Is(err, contract.ErrStale) {
			t.Errorf("%s: a commit is taken: %v", name, err)
		}
		if _, err := g.runtime.Report(t.Context(), &extensionv1.Readiness{}); err == nil {
			t.Errorf("%s: a report is taken", name)
		}
		watch, err := g.bus.Watch(t.Context(), &kernelv1.WatchRequest{Topics: []string{"a.b"}})
		if err == nil {
			_, err = watch.Recv()
		}
		if !errors.Is(contract.FromStatus(err), contract.ErrStale) {
			t.Errorf("%s: events are watched: %v", name, err)
		}
	}
}

// A stream that was opened in time does not outlive its generation.
func TestAnOpenStreamOfAnOlderGenerationIsRefused(t *testing.T) {
	w := newWorld(t)
	old := w.admit(bus.Actor{ID: "notes"})
	stream, err := old.bus.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	send := func(key string) (*kernelv1.ReceiptFrame, error) {
		err := stream.Send(
			&kernelv1.CommitFrame{Commits: []*busv1.Commit{{Effects: []*busv1.Effect{kerneltest.PutAt(key, "v", 0)}}}},
		)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return stream.Recv()
	}
	if _, err := send("one"); err != nil {
		t.Fatal(err)
	}
	w.host.Gone("notes", old.actor.Generation)
	fresh := w.admit(bus.Actor{ID: "notes"})
	if _, err := send("two"); !errors.Is(contract.FromStatus(err), contract.ErrStale) {
		t.Errorf("the older generation commits: %v", err)
	}
	for key, version := range map[string]int64{"one": 1, "two": 0} {
		if v, err := fresh.kv.Get(t.Context(), &kernelv1.GetRequest{Key: key}); err != nil || v.GetVersion() != version {
			t.Errorf("%s is %v, %v", key, v, err)
		}
	}
	w.host.Gone("notes", old.actor.Generation) // again: the fresh one is not meant
	if _, err := fresh.kv.Get(t.Context(), &kernelv1.GetRequest{Key: "one"}); err != nil {
		t.Error(err)
	}
}

func TestStoresAreApart(t *testing.T) {
	w := newWorld(t)
	notes, diary := w.admit(bus.Actor{ID: "notes"}), w.admit(bus.Actor{ID: "diary"})
	notes.mustCommit(kerneltest.PutAt("k", "of notes", 0))
	diary.mustCommit(kerneltest.PutAt("k", "of diary", 0), kerneltest.PutAt("l", "l", 0))
	for g, want := range map[*instance]string{notes: "of notes", diary: "of diary"} {
		if v, err := g.kv.Get(
			t.Context(),
			&kernelv1.GetRequest{Key: "k"},
		); err != nil || string(v.GetValue()) != want ||
			v.GetVersion() != 1 {
			t.Errorf("got %v, %v", v, err)
		}
	}
	if r, err := notes.kv.Scan(
		t.Context(),
		&kernelv1.ScanRequest{},
	); err != nil || len(r.GetValues()) != 1 ||
		r.GetMore() {
		t.Errorf("got %v, %v", r, err)
	}
	if v, err := notes.kv.Get(
		t.Context(),
		&kernelv1.GetRequest{Key: "l"},
	); err != nil || v.GetVersion() != 0 ||
		v.GetValue() != nil {
		t.Errorf("got %v, %v", v, err)
	}
}

func TestReportsComeFromTheConnection(t *testing.T) {
	w := newWorld(t)
	type report struct {
		extension  string
		generation int64
		state      extensionv1.Readiness_State
	}
	got := make(chan report, 1)
	w.host.Report = func(extension string, generation int64, r *extensionv1.Readiness) error {
		got <- report{extension, generation, r.GetState()}
		return nil
	}
	g := w.admit(bus.Actor{ID: "notes"})
	if _, err := g.runtime.Report(
		t.Context(),
		&extensionv1.Readiness{State: extensionv1.Readiness_STATE_OFFLINE},
	); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r != (report{"notes", g.actor.Generation, extensionv1.Readiness_STATE_OFFLINE}) {
		t.Errorf("got %+v", r)
	}
}
