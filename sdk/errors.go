package sdk

import (
	"errors"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
)

// ErrEnded is the cause of a handler's ctx that the kernel has ended: the delivery
// timed out or was revoked. After a timeout the kernel still accepts an answer for
// ten seconds; after a revocation it refuses all use of the lane
// (contract.ErrStale).
var ErrEnded = errors.New("the kernel has ended this delivery")

// Retry asks to retry the delivery after the given time. This does not count as a
// failure; the delivery expires by age. err is the reason, for people.
func Retry(after time.Duration, err error) error {
	return &outcomeError{kind: outcomeRetry, after: after, err: err}
}

// Drop makes the delivery a dead letter at once, with the reason.
func Drop(reason string) error {
	return &outcomeError{kind: outcomeDrop, err: errors.New(reason)}
}

// Unknown reports that the effect may or may not have happened (a connection broke
// after the request was sent). The next attempt is marked Uncertain.
func Unknown(err error) error {
	return &outcomeError{kind: outcomeUnknown, err: err}
}

// IsPermanent reports whether the kernel would refuse a commit again: nothing but a change
// of it would help.
func IsPermanent(err error) bool {
	return errors.Is(err, contract.ErrInvalid) || errors.Is(err, contract.ErrTooLarge)
}

// IsTemporary reports whether the kernel could not store something for now.
func IsTemporary(err error) bool {
	return errors.Is(err, contract.ErrFull) || errors.Is(err, contract.ErrUnavailable) || errors.Is(err, contract.ErrGone)
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
