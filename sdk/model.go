package sdk

import (
	"context"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// Models completes prompts.
type Models interface {
	// Complete answers r by emitting deltas: text as it arrives, each call when it
	// is complete, at the end the usage and the finish reason. An error of emit ends
	// the completion. After an error before the first delta the kernel tries the
	// next model; people see the error's text. The first delta may tell the context
	// window; alone, before the error of a request that is too long, it is no answer.
	Complete(ctx context.Context, r *CompleteRequest, emit func(*Delta) error) error
}

type (
	// CompleteRequest is a request to a model.
	CompleteRequest = extensionv1.CompleteRequest
	// Delta is a piece of its answer.
	Delta = extensionv1.Delta
	// Usage is the number of tokens of a completion.
	Usage = extensionv1.Usage
)
