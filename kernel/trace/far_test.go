package trace_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/trace"
)

// vast is a store with ten million events more than it has. It notes what is
// read of them at most.
type vast struct {
	journal.Reader
	most *int64
}

func (v vast) LastSeq() (int64, error) {
	last, err := v.Reader.LastSeq()
	return last + 10_000_000, err
}

func (v vast) Events(f journal.EventFilter) ([]*busv1.Event, error) {
	last, err := v.LastSeq()
	if err != nil {
		return nil, err
	}
	*v.most = max(*v.most, cmp.Or(f.Before, last+1)-f.After)
	return v.Reader.Events(f)
}

func (v vast) Deliveries(f journal.DeliveryFilter) ([]journal.Delivery, error) {
	last, err := v.LastSeq()
	if err != nil {
		return nil, err
	}
	if f.Seq == 0 {
		*v.most = max(*v.most, last-f.After)
	}
	return v.Reader.Deliveries(f)
}

// TestAVastStore is not read whole for one message.
func TestAVastStore(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Do(func(tx *bus.Tx) error {
			first, err := tx.Emit("x.y", "", "first")
			if err != nil {
				return err
			}
			return tx.Following(first, func() error { _, err := tx.Emit("x.y", "", "more"); return err })
		})
		var most int64
		err := w.Store.View(w.T.Context(), func(r journal.Reader) error {
			got, err := trace.Build(vast{r, &most}, "e2")
			if err != nil {
				return err
			}
			if got.Until != "e300001" || got.Root != "e1" || len(got.Tree.Children) != 1 {
				t.Errorf("until %q, root %s, %d children", got.Until, got.Root, len(got.Tree.Children))
			}
			_, err = trace.Build(vast{r, &most}, "no-such-message")
			if err == nil || !strings.Contains(err.Error(), "among the newest 300000 events") {
				t.Errorf("a message that is not there: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if most == 0 || most > trace.Followed+2 {
			t.Errorf("up to %d events are read", most)
		}
	})
}
