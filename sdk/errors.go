package sdk

import (
	"errors"
	"fmt"
	"time"
)

// ErrEnded is the cause of a handler's ctx that the kernel has ended: the time
// for the delivery is over, or it was taken away. In the first case an answer
// is still taken for ten seconds; in the second, whatever is done with the lane
// is refused (contract.ErrStale).
var ErrEnded = errors.New("the kernel has ended this delivery")

// Retry says: not now, again after the given time. It is not counted as a
// failure; the delivery gives up by age. err says why, for people.
func Retry(after time.Duration, err error) error {
	return &outcomeError{kind: outcomeRetry, after: after, err: err}
}

// Drop says: never. The delivery is dead at once, with the reason.
func Drop(reason string) error {
	return &outcomeError{kind: outcomeDrop, err: errors.New(reason)}
}

// Unknown says: it may or may not have happened (a connection broke after the
// request was sent). The next attempt is marked Uncertain.
func Unknown(err error) error {
	return &outcomeError{kind: outcomeUnknown, err: err}
}

type outcomeKind int

const (
	outcomeRetry outcomeKind = iota + 1
	outcomeDrop
	outcomeUnknown
)

type outcomeError struct {
	kind  outcomeKind
	after time.Duration
	err   error
}

func (e *outcomeError) Error() string {
	switch {
	case e.err == nil:
		return "retry"
	case e.kind == outcomeRetry:
		return fmt.Sprintf("%v (again in %s)", e.err, e.after)
	default:
		return e.err.Error()
	}
}

func (e *outcomeError) Unwrap() error { return e.err }
