package host_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

func TestWatchNeedsAGrant(t *testing.T) {
	w := newWorld(t)
	tests := []struct {
		granted, asked []string
		denied         bool
	}{
		{[]string{"notes.added"}, []string{"notes.added"}, false},
		{[]string{"notes.*"}, []string{"notes.added", "notes.added.late"}, false},
		{[]string{"notes.*"}, []string{"notes.*"}, false},
		{[]string{"notes.*"}, []string{"notes.added.*"}, false},
		{[]string{"notes.added"}, []string{"notes.added.*"}, true},
		{[]string{"notes.added"}, []string{"notes.*"}, true},
		{[]string{"notes.added"}, []string{"notes.added", "user.message"}, true},
		{nil, []string{"notes.added"}, true},
		{[]string{"*"}, []string{"notes.added"}, false},
		{[]string{"*"}, []string{"user.message"}, true},
		{[]string{"notes.*"}, []string{"*"}, true},
		{[]string{"notes.*"}, nil, true},
	}
	for _, test := range tests {
		g := w.admit(bus.Actor{ID: "notes", Subscribe: test.granted, Publish: []string{"notes.*", "*"}})
		watch, err := g.bus.Watch(t.Context(), &kernelv1.WatchRequest{Topics: test.asked})
		if err != nil {
			t.Fatal(err)
		}
		if test.denied {
			_, err := watch.Recv()
			if err = contract.FromStatus(err); !errors.Is(err, contract.ErrDenied) && !errors.Is(err, contract.ErrInvalid) {
				t.Errorf("%v grants %v: %v", test.granted, test.asked, err)
			}
			continue
		}
		topic := strings.ReplaceAll(test.asked[0], "*", "x")
		got := make(chan error, 1)
		go func() {
			e, err := watch.Recv()
			if err == nil && e.GetTopic() != topic {
				err = errors.New("got " + e.GetTopic())
			}
			got <- err
		}()
		for done := false; !done; { // it watches from some moment on
			g.mustCommit(kerneltest.Publish(topic, 1))
			select {
			case err := <-got:
				if err != nil {
					t.Errorf("%v denies %v: %v", test.granted, test.asked, err)
				}
				done = true
			default:
			}
		}
	}
}

// One that does not read is cut off, and nobody waits for it.
func TestASlowWatcherIsCut(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes", Subscribe: []string{"notes.added"}, Publish: []string{"notes.added"}})
	watch, err := g.bus.Watch(t.Context(), &kernelv1.WatchRequest{Topics: []string{"notes.added"}})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 500)
	var batch []*busv1.Effect
	for range 50 {
		batch = append(batch, kerneltest.Publish("notes.added", text))
	}
	for range 60 { // more than its window and every buffer on the way
		g.mustCommit(batch...)
	}
	n := 0
	for ; ; n++ {
		if _, err = watch.Recv(); err != nil {
			break
		}
	}
	if n >= 3000 || !strings.Contains(err.Error(), "too slow") {
		t.Errorf("after %d events: %v", n, err)
	}
}
