package sdk

import (
	"context"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Models completes prompts. The protobuf messages are used as they are: they
// are plain data.
type Models interface {
	// Complete answers r by emitting deltas: text as it comes, each call once it
	// is whole, at the end the usage and the reason. An error of emit ends the
	// completion. An error before the first delta lets the kernel try the next
	// model; its text is shown to people.
	Complete(ctx context.Context, r *CompleteRequest, emit func(*Delta) error) error
}

type (
	// CompleteRequest is what a model sees.
	CompleteRequest = extensionv1.CompleteRequest
	// Delta is a piece of what it says.
	Delta = extensionv1.Delta
	// Usage is how many tokens the completion took.
	Usage = extensionv1.Usage
)
