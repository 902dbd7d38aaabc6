package host_test

import (
	"errors"
	"strconv"
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

// One that does not read holds up nobody, and misses nothing.
func TestASlowWatcherMissesNothing(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{
		ID: "notes", Subscribe: []string{"notes.added", "notes.begun"}, Publish: []string{"notes.added", "notes.begun"},
	})
	watch, err := g.bus.Watch(t.Context(), &kernelv1.WatchRequest{Topics: []string{"notes.added", "notes.begun"}})
	if err != nil {
		t.Fatal(err)
	}
	watching := make(chan error, 1)
	go func() { watching <- second(watch.Recv()) }()
	for begun := false; !begun; { // it watches from some moment on
		g.mustCommit(kerneltest.Publish("notes.begun", 0))
		select {
		case err := <-watching:
			if err != nil {
				t.Fatal(err)
			}
			begun = true
		default:
		}
	}
	text := strings.Repeat("x", 500)
	n := 0
	for range 60 { // more than every buffer on the way
		var batch []*busv1.Effect
		for range 50 {
			batch = append(batch, kerneltest.Publish("notes.added", text+strconv.Itoa(n)))
			n++
		}
		g.mustCommit(batch...)
	}
	for i := 0; i < n; {
		e, err := watch.Recv()
		if err != nil {
			t.Fatalf("after %d events: %v", i, err)
		}
		if e.GetTopic() == "notes.begun" {
			continue
		}
		if !strings.HasSuffix(string(e.GetPayload()), "x"+strconv.Itoa(i)+`"`) {
			t.Fatalf("event %d is %s", i, e.GetPayload()[500:])
		}
		i++
	}
}

func second[T any](_ T, err error) error { return err }
