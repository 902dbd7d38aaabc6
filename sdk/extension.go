package sdk

import "context"

// Extension is a set of optional handlers. ID must be the manifest's id. It may
// have fewer handlers than the manifest provides, never more.
type Extension struct {
	ID string
	// Start runs once, after configuration and secrets have arrived and before
	// the first delivery. Its ctx ends at shutdown: background work started here
	// uses it. The extension is active when Start returns; an error fails the
	// start, and the supervisor tries again.
	Start func(ctx context.Context, k *Kernel) error
	// Run is background work: it is called in its own goroutine once the extension
	// is active, with Start's ctx, and should return when that ends. After an error
	// or a panic the extension reports Offline with the reason, and Run is called
	// again after a pause that grows from a second to a minute.
	Run func(ctx context.Context, k *Kernel) error
	// Stop runs at shutdown after the handlers have drained; ctx has the deadline.
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
	// Results handles the results of Call. Nil: they go to Handle, or nowhere without it.
	Results func(ctx context.Context, r CallResult) (Effects, error)
	// HandleAgent handles the inputs of an agent. Package sdk/agent provides it.
	HandleAgent AgentHandler
}

// Handler handles one event of a subscription. A nil error acknowledges it and
// commits the effects with the acknowledgement. An error retries it with back-off
// and counts as a failure, unless it is a Retry, Drop or Unknown. ctx carries the
// lane token, which makes calls of Kernel part of this delivery, and ends at the
// subscription's ack wait.
type Handler func(ctx context.Context, e Event) (Effects, error)

// AgentHandler is a Handler for the inputs of sessions.
type AgentHandler func(ctx context.Context, d Delivery) (Effects, error)
