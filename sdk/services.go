package sdk

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Services are the generated clients of the kernel's services, for run loops and
// other uses that the methods of Kernel do not cover. Set the lane field of requests
// to LaneOf(ctx), and convert errors with contract.FromStatus.
type Services struct {
	Sessions kernelv1.SessionsClient
	Tools    kernelv1.ToolsClient
	Models   kernelv1.ModelsClient
	Channels kernelv1.ChannelsClient
	// Conn is the connection itself, for services that the manifest grants besides:
	// see sdk/admin.Reader.
	Conn grpc.ClientConnInterface
}

// Services returns the clients on the extension's connection.
func (k *Kernel) Services() Services {
	return Services{Sessions: k.sessions, Tools: k.tools, Models: k.models, Channels: k.channels, Conn: k.conn}
}

// Complete asks a model, in the lane of ctx, and calls emit with each piece of the
// answer as it arrives. An error of emit ends the completion and is returned.
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
