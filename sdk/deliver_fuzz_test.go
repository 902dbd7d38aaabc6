package sdk

import (
	"context"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// For any frames, each delivery has one outcome, and is handled at most once.
func FuzzFrames(f *testing.F) {
	frame := func(d ...*busv1.Delivery) []byte {
		b, err := proto.Marshal(&extensionv1.DeliverFrame{Deliveries: d, Cancels: []string{"b", "", "x"}})
		if err != nil {
			f.Fatal(err)
		}
		return b
	}
	f.Add([]byte{}, frame())
	broken := &busv1.Delivery{Token: "b", DeadlineUs: -1, Event: &busv1.Event{Topic: "x", Payload: []byte("{")}}
	f.Add(frame(&busv1.Delivery{Token: "a"}, broken), frame(&busv1.Delivery{}))
	f.Add(frame(&busv1.Delivery{Token: "a", Attempt: -1, Turn: &busv1.TurnContext{}}), []byte("\xff\xff"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var mu sync.Mutex
		handled := 0
		s := newDeliveries(t.Context(), hclog.NewNullLogger(), func(context.Context, Delivery) (Effects, error) {
			mu.Lock()
			defer mu.Unlock()
			handled++
			return nil, nil
		})
		given := 0
		for _, raw := range [][]byte{first, second} {
			frame := &extensionv1.DeliverFrame{}
			if proto.Unmarshal(raw, frame) != nil {
				continue
			}
			given += len(frame.GetDeliveries())
			s.take(frame)
		}
		outcomes := 0
		for outcomes < given {
			frame, _ := s.frame()
			if frame == nil {
				<-s.wake
				continue
			}
			outcomes += len(frame.GetOutcomes())
		}
		s.end()
		for {
			if frame, idle := s.frame(); idle {
				break
			} else if frame == nil {
				<-s.wake
			} else {
				outcomes += len(frame.GetOutcomes())
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if outcomes != given || handled > given {
			t.Errorf("%d deliveries were handled %d times and have %d outcomes", given, handled, outcomes)
		}
	})
}
