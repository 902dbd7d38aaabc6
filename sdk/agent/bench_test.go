package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// BenchmarkPlainTurn measures the loop's cost of a plain turn, with an instant model:
// it does not depend on the number of earlier turns.
func BenchmarkPlainTurn(b *testing.B) {
	for _, before := range []int{0, 100, 10_000} {
		b.Run(fmt.Sprintf("after_%d_turns", before), func(b *testing.B) {
			w := newWorld()
			w.discards = true
			w.tool("core/send_to_channel", false)
			w.model = func(_ context.Context, _ *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
				return emit(&sdk.Delta{Text: "Hello yourself.", Finish: "stop"})
			}
			a := New(Options{})
			a.start(w, "Assistant", &extensionv1.AgentSpec{MaxTokens: 20_000}, Plain{}, time.UTC, hclog.NewNullLogger())
			h := &history{session: "s1"}
			for range before {
				h.predict([]*busv1.Entry{
					{Kind: "input", InputKind: "user", Text: "Hello, how are you?"}, {Kind: "answer", Text: "Hello yourself."},
				}, -a.turns.Add(1))
			}
			w.pruned = h.seq
			a.histories.put(h)
			event := input("e1", user("Hello, how are you?"))
			b.ReportAllocs()
			for b.Loop() {
				if err := w.deliver(context.Background(), a, event); err != nil {
					b.Fatal(err)
				}
				w.pruned += int64(len(w.rows))
				w.rows, w.rpcs, w.outputs, w.settled = w.rows[:0], w.rpcs[:0], w.outputs[:0], w.settled[:0]
			}
		})
	}
}
