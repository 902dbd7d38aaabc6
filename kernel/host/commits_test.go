package host_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// Receipts come in the order of the commits, one for each, also when some are
// refused, and also after the last commit was sent.
func TestReceiptsComeInOrder(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.added"}})
	stream, err := g.bus.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const frames, each = 40, 25
	for i := range frames {
		frame := &kernelv1.CommitFrame{}
		for j := range each {
			n := i*each + j
			effect := kerneltest.PutAt(fmt.Sprintf("key%d", n), "v", 0)
			switch n % 5 {
			case 3:
				effect = kerneltest.PutAt("key0", "v", 99) // a conflict
			case 4:
				effect = kerneltest.Publish("notes.removed", n) // not granted
			}
			frame.Commits = append(
				frame.Commits,
				&busv1.Commit{Effects: []*busv1.Effect{kerneltest.Publish("notes.added", n), effect}},
			)
		}
		if err := stream.Send(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	n, last := 0, int64(0)
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range frame.GetReceipts() {
			err := contract.FromProto(r.GetError())
			switch n % 5 {
			case 3:
				if !errors.Is(err, contract.ErrConflict) {
					t.Errorf("commit %d: %v", n, err)
				}
			case 4:
				if !errors.Is(err, contract.ErrDenied) || !strings.Contains(err.Error(), "publish: [notes.removed]") {
					t.Errorf("commit %d: %v", n, err)
				}
			default:
				if err != nil || len(r.GetResults()) != 2 {
					t.Fatalf("commit %d: %v, %v", n, r, err)
				}
				var seq int64
				if _, err := fmt.Sscanf(r.GetResults()[0].GetEventId(), "e%d", &seq); err != nil || seq <= last {
					t.Errorf("commit %d published %q, after e%d", n, r.GetResults()[0].GetEventId(), last)
				}
				last = seq
			}
			n++
		}
	}
	if n != frames*each {
		t.Errorf("%d receipts for %d commits", n, frames*each)
	}
}

func TestACommitThatIsRepeatedHappensOnce(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes", Publish: []string{"notes.added"}})
	var ids []string
	for range 3 {
		stream, err := g.bus.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		commit := &busv1.Commit{Id: "once", Effects: []*busv1.Effect{kerneltest.Publish("notes.added", 1)}}
		if err := stream.Send(&kernelv1.CommitFrame{Commits: []*busv1.Commit{commit}}); err != nil {
			t.Fatal(err)
		}
		frame, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, frame.GetReceipts()[0].GetResults()[0].GetEventId())
	}
	if ids[0] == "" || ids[1] != ids[0] || ids[2] != ids[0] {
		t.Errorf("the events are %v", ids)
	}
}

func TestAnEffectOfNoKindIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes"})
	if _, err := g.commit("", &busv1.Effect{}); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
