package sdk

import "context"

// Extension is a set of optional handlers. ID must be the manifest's id; what
// is set here may be less than the manifest provides, never more.
type Extension struct {
	ID string
	// Start runs once, after configuration and secrets have arrived and before
	// the first delivery. Its ctx ends at shutdown: background work started here
	// uses it. The extension is active when Start returns; an error fails the
	// start, and the supervisor tries again.
	Start func(ctx context.Context, k *Kernel) error
	// Run is background work: it is called in a goroutine of its own once the
	// extension is active, with Start's ctx, and should return when that ends.
	// An error or a panic before disturbs nothing else: the extension says that
	// it is offline, and why, and Run is called again after a pause that grows
	// from a second to a minute.
	Run func(ctx context.Context, k *Kernel) error
	// Stop runs at shutdown after the handlers have drained; ctx carries the
	// deadline.
	Stop func(ctx context.Context) error
	// Channel sends messages to people. If it also implements Drafter, drafts
	// are shown.
	Channel Channel
	// Tools are offered to agents under <id>/<name>.
	Tools []Tool
	// Models completes prompts for <id>/<model>.
	Models Models
	// Handle handles the deliveries of the manifest's subscriptions.
	Handle Handler
	// HandleAgent handles the inputs of an agent. Package sdk/agent provides it.
	HandleAgent AgentHandler
}

// Handler handles one event of a subscription. A nil error acknowledges it and
// commits the effects with the acknowledgement. An error makes it run again
// with back-off, counted; Retry, Drop and Unknown say otherwise. ctx carries
// the lane token, ends at the subscription's ack wait, and makes every call of
// Kernel part of this delivery.
type Handler func(ctx context.Context, e Event) (Effects, error)

// AgentHandler handles one input of a session as a Handler does.
type AgentHandler func(ctx context.Context, d Delivery) (Effects, error)
