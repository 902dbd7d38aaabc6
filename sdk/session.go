package sdk

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Session reads one session; empty: the one of ctx's lane.
func (k *Kernel) Session(ctx context.Context, session string) (*kernelv1.Session, error) {
	r, err := k.sessions.Get(ctx, &kernelv1.SessionRequest{Session: session, Lane: LaneOf(ctx)})
	return r, contract.FromStatus(err)
}

// Sessions lists an agent's sessions, newest first; empty: of all agents. A
// limit of 0 is the kernel's.
func (k *Kernel) Sessions(ctx context.Context, agent string, limit int32) ([]*kernelv1.Session, error) {
	r, err := k.sessions.List(ctx, &kernelv1.ListSessionsRequest{Agent: agent, Limit: limit, Lane: LaneOf(ctx)})
	return r.GetSessions(), contract.FromStatus(err)
}

// History reads the newest rows of a session behind afterSeq, whole turns of
// at most maxBytes together (0: the kernel's limit), oldest first; truncated
// says that older ones exist.
func (k *Kernel) History(ctx context.Context, session string, afterSeq, maxBytes int64) (entries []*busv1.Entry, truncated bool, err error) {
	r, err := k.sessions.History(ctx, &kernelv1.HistoryRequest{
		Session: session, Lane: LaneOf(ctx), AfterSeq: afterSeq, MaxBytes: maxBytes,
	})
	return r.GetEntries(), r.GetTruncated(), contract.FromStatus(err)
}

// Pending lists the inputs that wait behind the one of ctx's lane, in order.
func (k *Kernel) Pending(ctx context.Context) ([]Event, error) {
	r, err := k.sessions.Pending(ctx, &kernelv1.PendingRequest{Lane: LaneOf(ctx)})
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	events := make([]Event, len(r.GetInputs()))
	for i, e := range r.GetInputs() {
		events[i] = eventOf(e)
	}
	return events, nil
}

// ListTools lists the tools that the agent of ctx's lane may use, with full
// names. The etag changes when the list does.
func (k *Kernel) ListTools(ctx context.Context) (tools []*extensionv1.Tool, etag string, err error) {
	r, err := k.tools.List(ctx, &kernelv1.ListToolsRequest{Lane: LaneOf(ctx)})
	return r.GetTools(), r.GetEtag(), contract.FromStatus(err)
}

// CallTool runs the open call row with this id, or joins it if it runs already,
// and returns its stored result.
func (k *Kernel) CallTool(ctx context.Context, callID string) (*extensionv1.CallResult, error) {
	r, err := k.tools.Call(ctx, &kernelv1.CallToolRequest{Lane: LaneOf(ctx), CallId: callID})
	return r, contract.FromStatus(err)
}

// AskTool calls a read-only tool without a row.
func (k *Kernel) AskTool(ctx context.Context, name string, arguments []byte) (*extensionv1.CallResult, error) {
	r, err := k.tools.Call(ctx, &kernelv1.CallToolRequest{Lane: LaneOf(ctx), Name: name, Arguments: arguments})
	return r, contract.FromStatus(err)
}

// Complete asks a model; r's lane is taken from ctx. Each delta goes to emit,
// whose error ends the completion and is returned.
func (k *Kernel) Complete(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*Delta) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.Lane = LaneOf(ctx)
	stream, err := k.models.Complete(ctx, r)
	if err != nil {
		return contract.FromStatus(err)
	}
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return contract.FromStatus(err)
		}
		if err := emit(d); err != nil {
			return err
		}
	}
}

// DraftStream shows the text of a turn while it is being written.
type DraftStream struct {
	lane   string
	stream grpc.ClientStreamingClient[kernelv1.DraftRequest, kernelv1.DraftResponse]
}

// Draft opens a stream of drafts in the conversation of ctx's lane. It ends
// with Close or with ctx.
func (k *Kernel) Draft(ctx context.Context) (*DraftStream, error) {
	stream, err := k.channels.Draft(ctx)
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	return &DraftStream{lane: LaneOf(ctx), stream: stream}, nil
}

// Show shows all of the text so far; empty: the assistant is working. Drafts
// may be lost, so an error is no reason to stop.
func (d *DraftStream) Show(text string) error {
	return contract.FromStatus(d.stream.Send(&kernelv1.DraftRequest{Lane: d.lane, Text: text}))
}

// Close ends the draft and waits until the kernel has taken note.
func (d *DraftStream) Close() error {
	_, err := d.stream.CloseAndRecv()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return contract.FromStatus(err)
}
