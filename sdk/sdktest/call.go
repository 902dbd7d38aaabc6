package sdktest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// CallOption refines a tool call.
type CallOption func(*extensionv1.CallRequest)

// Call calls a tool of the extension and commits its effects, as the kernel
// does. Arguments are encoded as JSON unless they are []byte. An error of the
// request, or effects that are refused, fail the test; a failed result does
// not.
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

// TryCall is Call with an error of the request, or the refusal of the effects.
func (k *Kernel) TryCall(ctx context.Context, name string, arguments any, options ...CallOption) (*extensionv1.CallResult, error) {
	k.t.Helper()
	s := k.state
	s.mu.Lock()
	s.calls++
	r := &extensionv1.CallRequest{
		CallId: fmt.Sprintf("call%d", s.calls), Lane: fmt.Sprintf("lane%d", s.calls),
		Name: name, Arguments: encode(k.t, arguments),
	}
	s.mu.Unlock()
	for _, o := range options {
		o(r)
	}
	s.mu.Lock()
	s.lanes[r.GetLane()] = &busv1.Event{Id: r.GetCallId(), CorrelationId: r.GetCallId()}
	s.mu.Unlock()
	defer s.endLane(r.GetLane())

	result, err := extensionv1.NewToolsClient(k.now().conn).Call(ctx, r)
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	if len(result.GetEffects()) > 0 {
		receipt := k.commit(&busv1.Commit{Lane: r.GetLane(), Effects: result.GetEffects()})
		if receipt.GetError() != nil {
			return nil, contract.FromProto(receipt.GetError())
		}
	}
	return result, nil
}

// Complete asks a model of the extension and returns all that it emitted.
func (k *Kernel) Complete(ctx context.Context, r *extensionv1.CompleteRequest) ([]*extensionv1.Delta, error) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := extensionv1.NewModelsClient(k.now().conn).Complete(ctx, r)
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

// Draft shows drafts in the extension's channel, in order, and returns when it
// has taken them.
func (k *Kernel) Draft(ctx context.Context, updates ...*extensionv1.DraftUpdate) error {
	k.t.Helper()
	stream, err := extensionv1.NewDraftsClient(k.now().conn).Draft(ctx)
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
