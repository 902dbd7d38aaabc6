package command_test

import (
	"context"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// run runs /shout, whose call fails with an error.
func run(ctx context.Context, tool *extensionv1.Tool, err error) (*busv1.Outcome, string) {
	d := &busv1.Delivery{Token: "t", Attempt: 1, Event: &busv1.Event{Id: "e1", Payload: []byte(`{"name":"shout"}`)}}
	tool.Name, tool.Schema = "shout", []byte(`{"type":"object"}`)
	return command.Run(ctx, d, &command.Tool{Tool: tool}, "UTC",
		func(context.Context, *extensionv1.CallRequest) (*extensionv1.CallResult, error) { return nil, err })
}

func TestACommandThatTakesTooLongIsAnswered(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(command.ErrTimeout)
	o, answer := run(ctx, &extensionv1.Tool{}, context.Canceled)
	if o.GetKind() != busv1.Outcome_KIND_ACK || answer != "/shout took too long and was stopped." {
		t.Errorf("the outcome is %v with the answer %q", o, answer)
	}
}

// What may have run says so when it is run again, also where that does no harm.
func TestACommandThatWasInterruptedMayHaveRun(t *testing.T) {
	t.Parallel()
	for _, tool := range []*extensionv1.Tool{{}, {ReadOnly: true}, {Idempotent: true}} {
		if o, _ := run(t.Context(), tool, contract.ErrGone); o.GetKind() != busv1.Outcome_KIND_UNKNOWN {
			t.Errorf("the outcome of %v is %v", tool, o)
		}
		if o, _ := run(t.Context(), tool, contract.ErrUnavailable); o.GetKind() != busv1.Outcome_KIND_RETRY {
			t.Errorf("the outcome of %v that did not run is %v", tool, o)
		}
	}
}

// A command in a group that an earlier version has queued names no group: it may use
// nothing of the household's.
func TestACommandOfAnEarlierVersionInAGroup(t *testing.T) {
	t.Parallel()
	for payload, confined := range map[string]bool{
		`{"name":"shout"}`: false, `{"name":"shout","group":true}`: true,
		`{"name":"shout","group":true,"principal":{"group":"g"}}`: false,
	} {
		d := &busv1.Delivery{Token: "t", Attempt: 1, Event: &busv1.Event{Id: "e1", Payload: []byte(payload)}}
		tool := &extensionv1.Tool{Name: "shout", Schema: []byte(`{"type":"object"}`)}
		called := false
		command.Run(t.Context(), d, &command.Tool{Tool: tool}, "UTC",
			func(_ context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
				called = true
				if p := contract.PrincipalOf(r.GetPrincipal()); p.Confined != confined || p.Sees(contract.Principal{}) == confined {
					t.Errorf("%s is for %+v", payload, p)
				}
				return &extensionv1.CallResult{}, nil
			})
		if !called {
			t.Errorf("%s is not run", payload)
		}
	}
}
