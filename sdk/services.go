package sdk

import "github.com/switchboard-run/switchboard/contract/kernelv1"

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
