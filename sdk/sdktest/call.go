package sdktest

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// CallOption changes the context of a tool call that the extension is told: the
// agent, its scopes of memory, the place that it answers, its principal. Without one the
// call of an agent sees everything, as the owner's command line does.
type CallOption func(*extensionv1.CallRequest)

// Call has an agent call a tool of the extension. Arguments are encoded as JSON
// unless they are []byte. An error of the request fails the test; a failed result
// does not, and arguments that do not fit the tool's schema have one.
func (k *Kernel) Call(name string, arguments any, options ...CallOption) *extensionv1.CallResult {
	k.t.Helper()
	r, err := k.TryCall(k.t.Context(), name, arguments, options...)
	if err != nil {
		k.t.Fatalf("sdktest: call of %s: %v", name, err)
	}
	return r
}

// MustCall is Call for a call that succeeds, and returns its content.
func (k *Kernel) MustCall(name string, arguments any, options ...CallOption) string {
	k.t.Helper()
	r := k.Call(name, arguments, options...)
	if r.GetIsError() {
		k.t.Fatalf("sdktest: call of %s failed: %s", name, r.GetContent())
	}
	return r.GetContent()
}

// TryCall is Call with the error of the request: the kernel has no result, and the
// call is open. It may be called from any goroutine.
func (k *Kernel) TryCall(
	ctx context.Context, name string, arguments any, options ...CallOption,
) (*extensionv1.CallResult, error) {
	k.t.Helper()
	t, err := k.turn(ctx)
	if err != nil {
		return nil, err
	}
	return k.call(ctx, t, k.ID()+"/"+name, k.arguments(arguments), options)
}

// Ask has the agent ask a read-only tool of the extension without a row of its
// history, as agents do for the context of a turn.
func (k *Kernel) Ask(name string, arguments any, options ...CallOption) *extensionv1.CallResult {
	k.t.Helper()
	t, err := k.turn(k.t.Context())
	if err != nil {
		k.t.Fatalf("sdktest: ask %s: %v", name, err)
	}
	k.cast.mu.Lock()
	k.cast.refining[""] = options
	k.cast.mu.Unlock()
	r, err := k.caller().Services().Tools.Call(k.t.Context(), &kernelv1.CallToolRequest{
		Name: k.ID() + "/" + name, Arguments: k.arguments(arguments), Lane: sdk.LaneOf(t.ctx),
	})
	if err != nil {
		k.t.Fatalf("sdktest: ask %s: %v", name, contract.FromStatus(err))
	}
	k.cast.release(t)
	return r
}

// arguments are those of a call; nil is none.
func (k *Kernel) arguments(value any) []byte {
	k.t.Helper()
	b := encode(k.t, value)
	if _, raw := value.([]byte); !raw && string(b) == "null" {
		return []byte("{}")
	}
	return b
}

// Command has a person give one of the extension's slash commands, and returns what
// the person is answered; text is what follows the name.
func (k *Kernel) Command(name, text string, options ...CallOption) string {
	k.t.Helper()
	k.caller() // the agent of the conversation
	k.cast.mu.Lock()
	k.cast.commands[name] = options
	k.cast.mu.Unlock()
	m := contract.UserMessage{Text: strings.TrimSpace("/" + name + " " + text)}
	k.says(&m)
	var answer []string
	k.WaitFor("an answer to /"+name, func() bool {
		answer = answer[:0]
		for _, shown := range k.Sent(k.persons()) {
			if shown.ReplyTo == m.MessageID {
				if answer = append(answer, shown.Text); shown.Part == shown.Parts {
					return true
				}
			}
		}
		return false
	})
	return strings.Join(answer, "\n")
}

func (k *Kernel) persons() string {
	k.cast.mu.Lock()
	defer k.cast.mu.Unlock()
	return k.cast.persons
}

// Complete asks a model of the extension, by its name there, and returns all that it
// emitted.
func (k *Kernel) Complete(ctx context.Context, r *extensionv1.CompleteRequest) ([]*extensionv1.Delta, error) {
	k.t.Helper()
	k.cast.mu.Lock()
	model := k.ID() + "/" + r.GetModel()
	known := k.cast.asked == model
	k.cast.asked = model
	k.cast.mu.Unlock()
	if !known {
		k.applyIfRunning()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := k.caller().Services().Models.Complete(ctx, &kernelv1.CompleteRequest{
		Model: testedModel, Messages: r.GetMessages(), Tools: r.GetTools(), MaxTokens: r.GetMaxTokens(),
		Purpose: r.GetPurpose(),
	})
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	var deltas []*extensionv1.Delta
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return deltas, nil
		}
		if err != nil {
			return deltas, contract.FromStatus(err)
		}
		deltas = append(deltas, d)
	}
}

// Draft shows drafts in the extension's channel, in order, and returns when it has
// taken them.
func (k *Kernel) Draft(ctx context.Context, updates ...*extensionv1.DraftUpdate) error {
	k.t.Helper()
	stream, err := extensionv1.NewDraftsClient(k.Conn()).Draft(ctx)
	if err != nil {
		return contract.FromStatus(err)
	}
	for _, u := range updates {
		if err := stream.Send(u); err != nil && !errors.Is(err, io.EOF) {
			return contract.FromStatus(err)
		}
	}
	_, err = stream.CloseAndRecv()
	return contract.FromStatus(err)
}
