package sdk

import (
	"context"
	"errors"
	"io"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Services are the kernel's services as generated clients, for what the
// methods of Kernel leave out: a run loop reads sessions, lists and calls
// tools, completes and drafts. Requests that have a lane field need LaneOf(ctx)
// there; errors go through contract.FromStatus.
type Services struct {
	Sessions kernelv1.SessionsClient
	Tools    kernelv1.ToolsClient
	Models   kernelv1.ModelsClient
	Channels kernelv1.ChannelsClient
}

// Services returns the clients on the extension's connection.
func (k *Kernel) Services() Services {
	return Services{Sessions: k.sessions, Tools: k.tools, Models: k.models, Channels: k.channels}
}

// Complete asks a model, under the lane of ctx, and calls emit with each piece of
// the answer as it comes. An error of emit ends the completion and is returned.
func (s Services) Complete(ctx context.Context, r *kernelv1.CompleteRequest, emit func(*Delta) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.Lane = LaneOf(ctx)
	stream, err := s.Models.Complete(ctx, r)
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
