package sdk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

const (
	// conflictPause keeps handlers that race for one key from spinning.
	conflictPause = 20 * time.Millisecond
	// maxReason is the largest length of a reason, in bytes.
	maxReason = 4 << 10
)

// errShutdown is the cause of contexts that a shutdown ends.
var errShutdown = errors.New("the extension is shutting down")

// settle sets the outcome of a delivery from its handler's results.
func settle(o *busv1.Outcome, effects Effects, err error) {
	if err == nil {
		o.Kind = busv1.Outcome_KIND_ACK
		attach(o, effects)
		return
	}
	o.Reason = reasonOf(err)
	var control *outcomeError
	switch {
	case errors.As(err, &control) && control.kind == outcomeRetry:
		o.Kind, o.RetryAfterMs = busv1.Outcome_KIND_RETRY, max(0, control.after.Milliseconds())
	case control != nil && control.kind == outcomeDrop:
		o.Kind = busv1.Outcome_KIND_DROP
		attach(o, effects)
	case control != nil && control.kind == outcomeUnknown:
		o.Kind = busv1.Outcome_KIND_UNKNOWN
	case errors.Is(err, errShutdown):
		o.Kind = busv1.Outcome_KIND_RETRY
	case errors.Is(err, contract.ErrConflict):
		o.Kind, o.RetryAfterMs = busv1.Outcome_KIND_RETRY, conflictPause.Milliseconds()
	default:
		o.Kind = busv1.Outcome_KIND_FAIL
	}
}

// attach adds effects to o. If they cannot be encoded, they can never be committed,
// and the delivery is dropped.
func attach(o *busv1.Outcome, effects Effects) {
	if len(effects) == 0 {
		return
	}
	protos, err := effects.protos()
	if err == nil {
		o.Effects = protos
		if size := proto.Size(o); size > maxCommit {
			err = fmt.Errorf("%d effects with %d bytes (at most %d): %w", len(protos), size, maxCommit, contract.ErrTooLarge)
		}
	}
	if err != nil {
		o.Kind, o.Effects = busv1.Outcome_KIND_DROP, nil
		o.Reason = reasonOf(fmt.Errorf("effects of the handler: %w", err))
	}
}

func reasonOf(err error) string {
	reason := err.Error()
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return strings.ToValidUTF8(reason, "\uFFFD")
}

// interrupted wraps err in errShutdown if the shutdown ended ctx.
func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errShutdown) {
		return fmt.Errorf("%w: %w", errShutdown, err)
	}
	return err
}
