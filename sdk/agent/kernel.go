package agent

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// kernel is the part of the kernel that a run loop uses. The ctx carries the lane
// token; errors wrap the sentinels of package contract.
type kernel interface {
	History(ctx context.Context, session string, afterSeq, maxBytes int64) (rows []*busv1.Entry, more bool, err error)
	Pending(ctx context.Context) ([]*busv1.Event, error)
	ListTools(ctx context.Context) ([]*extensionv1.Tool, error)
	// Ask calls a read-only tool without recording it.
	Ask(ctx context.Context, tool string, arguments []byte) (*extensionv1.CallResult, error)
	CallTool(ctx context.Context, callID string) (*extensionv1.CallResult, error)
	Complete(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
	Drafts(ctx context.Context) (drafts, error)
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	// Draining ends when the agent begins to shut down.
	Draining() context.Context
	// GetBlob writes a file of the session to to.
	GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error)
}

// drafts shows texts until its ctx ends.
type drafts interface {
	Show(text string) error
}

// link implements kernel on the extension's connection.
type link struct {
	*sdk.Kernel
	services sdk.Services
}

func (l link) History(ctx context.Context, session string, afterSeq, maxBytes int64) ([]*busv1.Entry, bool, error) {
	r, err := l.services.Sessions.History(ctx, &kernelv1.HistoryRequest{
		Session: session, Lane: sdk.LaneOf(ctx), AfterSeq: afterSeq, MaxBytes: maxBytes,
	})
	return r.GetEntries(), r.GetTruncated(), contract.FromStatus(err)
}

func (l link) Pending(ctx context.Context) ([]*busv1.Event, error) {
	r, err := l.services.Sessions.Pending(ctx, &kernelv1.PendingRequest{Lane: sdk.LaneOf(ctx)})
	return r.GetInputs(), contract.FromStatus(err)
}

func (l link) ListTools(ctx context.Context) ([]*extensionv1.Tool, error) {
	r, err := l.services.Tools.List(ctx, &kernelv1.ListToolsRequest{Lane: sdk.LaneOf(ctx)})
	return r.GetTools(), contract.FromStatus(err)
}

func (l link) Ask(ctx context.Context, tool string, arguments []byte) (*extensionv1.CallResult, error) {
	r, err := l.services.Tools.Call(ctx, &kernelv1.CallToolRequest{
		Lane: sdk.LaneOf(ctx), Name: tool, Arguments: arguments,
	})
	return r, contract.FromStatus(err)
}

// drainGrace is how long a call, and a model that has not begun its answer, may still take
// once the agent drains: what serves them may be draining, too, and the kernel waits for the
// next one. The kernel goes on with a call, and the resumed turn finds its result.
const drainGrace = 20 * time.Millisecond

func (l link) CallTool(ctx context.Context, callID string) (*extensionv1.CallResult, error) {
	lane := sdk.LaneOf(ctx)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.Draining(), func() { time.AfterFunc(drainGrace, func() { cancel(errDraining) }) })()
	r, err := l.services.Tools.Call(ctx, &kernelv1.CallToolRequest{Lane: lane, CallId: callID})
	if err != nil && errors.Is(context.Cause(ctx), errDraining) {
		return nil, sdk.Retry(0, errDraining)
	}
	return r, contract.FromStatus(err)
}

var errDraining = errors.New("the agent is shutting down; its turn continues later")

func (l link) Complete(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*sdk.Delta) error) error {
	if r.GetRecording() != nil { // its failure would be written down
		return l.services.Complete(ctx, r, emit)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var began atomic.Bool
	defer context.AfterFunc(l.Draining(), func() {
		time.AfterFunc(drainGrace, func() {
			if !began.Load() {
				cancel(errDraining)
			}
		})
	})()
	err := l.services.Complete(ctx, r, func(d *sdk.Delta) error {
		began.Store(true)
		return emit(d)
	})
	if err != nil && errors.Is(context.Cause(ctx), errDraining) {
		return sdk.Retry(0, errDraining)
	}
	return err
}

func (l link) Drafts(ctx context.Context) (drafts, error) {
	stream, err := l.services.Channels.Draft(ctx)
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	return draftStream{stream: stream, lane: sdk.LaneOf(ctx)}, nil
}

type draftStream struct {
	stream interface {
		Send(*kernelv1.DraftRequest) error
	}
	lane string
}

func (s draftStream) Show(text string) error {
	return s.stream.Send(&kernelv1.DraftRequest{Lane: s.lane, Text: text})
}
