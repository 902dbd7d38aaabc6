package agent

import (
	"context"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// kernel is what a run loop asks of the kernel. ctx carries the lane token;
// errors wrap the sentinels of package contract.
type kernel interface {
	history(ctx context.Context, r *kernelv1.HistoryRequest) (*kernelv1.HistoryResponse, error)
	pending(ctx context.Context) ([]*busv1.Event, error)
	listTools(ctx context.Context) (*kernelv1.ListToolsResponse, error)
	call(ctx context.Context, callID string) (*extensionv1.CallResult, error)
	complete(ctx context.Context, r *kernelv1.CompleteRequest) (deltas, error)
	listChannels(ctx context.Context) ([]*kernelv1.Channel, error)
	draft(ctx context.Context) (drafts, error)
	commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
}

// deltas is a completion under way; io.EOF ends it.
type deltas interface {
	Recv() (*extensionv1.Delta, error)
}

// drafts takes texts to show.
type drafts interface {
	Send(*kernelv1.DraftRequest) error
}

// link is the kernel at the other end of the extension's connection.
type link struct {
	k        *sdk.Kernel
	services sdk.Services
}

func (l *link) history(ctx context.Context, r *kernelv1.HistoryRequest) (*kernelv1.HistoryResponse, error) {
	r.Lane = sdk.LaneOf(ctx)
	h, err := l.services.Sessions.History(ctx, r)
	return h, contract.FromStatus(err)
}

func (l *link) pending(ctx context.Context) ([]*busv1.Event, error) {
	p, err := l.services.Sessions.Pending(ctx, &kernelv1.PendingRequest{Lane: sdk.LaneOf(ctx)})
	return p.GetInputs(), contract.FromStatus(err)
}

func (l *link) listTools(ctx context.Context) (*kernelv1.ListToolsResponse, error) {
	r, err := l.services.Tools.List(ctx, &kernelv1.ListToolsRequest{Lane: sdk.LaneOf(ctx)})
	return r, contract.FromStatus(err)
}

func (l *link) call(ctx context.Context, callID string) (*extensionv1.CallResult, error) {
	r, err := l.services.Tools.Call(ctx, &kernelv1.CallToolRequest{Lane: sdk.LaneOf(ctx), CallId: callID})
	return r, contract.FromStatus(err)
}

func (l *link) complete(ctx context.Context, r *kernelv1.CompleteRequest) (deltas, error) {
	r.Lane = sdk.LaneOf(ctx)
	s, err := l.services.Models.Complete(ctx, r)
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	return statusDeltas{s}, nil
}

// statusDeltas maps the errors of a stream.
type statusDeltas struct{ stream deltas }

func (s statusDeltas) Recv() (*extensionv1.Delta, error) {
	d, err := s.stream.Recv()
	return d, contract.FromStatus(err)
}

func (l *link) listChannels(ctx context.Context) ([]*kernelv1.Channel, error) {
	return l.k.Channels(ctx)
}

func (l *link) draft(ctx context.Context) (drafts, error) {
	s, err := l.services.Channels.Draft(ctx)
	if err != nil {
		return nil, contract.FromStatus(err)
	}
	return laneDrafts{stream: s, lane: sdk.LaneOf(ctx)}, nil
}

// laneDrafts adds the lane to every update.
type laneDrafts struct {
	stream drafts
	lane   string
}

func (s laneDrafts) Send(r *kernelv1.DraftRequest) error {
	r.Lane = s.lane
	return s.stream.Send(r)
}

func (l *link) commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	return l.k.Commit(ctx, effects...)
}
