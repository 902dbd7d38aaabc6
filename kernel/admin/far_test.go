package admin_test

import (
	"cmp"
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// vast is a store with ten million events more than it has. It notes what is
// read of them at most.
type vast struct {
	adminv1.ReadClient
	most int64
}

const more = 10_000_000

func (v *vast) Events(
	ctx context.Context,
	q *adminv1.EventsRequest,
	o ...grpc.CallOption,
) (adminv1.Read_EventsClient, error) {
	last, err := admin.LastSeq(ctx, v.ReadClient)
	if err != nil {
		return nil, err
	}
	last += more
	switch {
	case q.GetLimit() == 1 && q.GetTopic() == "":
		return &collected[busv1.Event]{rows: []*busv1.Event{{Seq: last}}}, nil
	case len(q.GetIds()) == 0:
		v.most = max(v.most, cmp.Or(q.GetBefore(), last+1)-q.GetAfter())
	}
	return v.ReadClient.Events(ctx, q, o...)
}

// A vast store is not read whole for one message.
func TestTraceInAVastStore(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		w.Do(func(tx *bus.Tx) error {
			first, err := tx.Emit("x.y", "", "first")
			if err != nil {
				return err
			}
			return tx.Following(first, func() error { _, err := tx.Emit("x.y", "", "more"); return err })
		})
		v := &vast{ReadClient: reads(w)}
		got, err := admin.ReadTrace(w.T.Context(), v, "e2")
		if err != nil {
			t.Fatal(err)
		}
		if got.Until != "e300001" || got.Root != "e1" || len(got.Tree.Children) != 1 {
			t.Errorf("until %q, root %s, %d children", got.Until, got.Root, len(got.Tree.Children))
		}
		_, err = admin.ReadTrace(w.T.Context(), v, "no-such-message")
		if err == nil || !strings.Contains(err.Error(), "among the newest 300000 events") {
			t.Errorf("a message that is not there: %v", err)
		}
		if v.most == 0 || v.most > admin.Followed+2 {
			t.Errorf("up to %d events are read", v.most)
		}
	})
}
