package contract

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract/busv1"
)

// Sentinels that callers branch on. Every error that crosses the
// contract wraps at most one of them; FromStatus and ToStatus map them.
var (
	// ErrGone: the other process has ended.
	ErrGone = errors.New("the other side is gone")
	// ErrConflict: a version or sequence number was not the expected one. Read
	// again and repeat.
	ErrConflict = errors.New("version conflict")
	// ErrDenied: the manifest does not grant it.
	ErrDenied = errors.New("not granted")
	// ErrStale: the lane token is no longer valid. Stop.
	ErrStale = errors.New("the lane token is stale")
	// ErrNotFound: it does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInvalid: the request is wrong and will stay wrong.
	ErrInvalid = errors.New("invalid")
	// ErrTooLarge: over a limit.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable: not possible now.
	ErrUnavailable = errors.New("unavailable")
	// ErrFull: the store takes nothing new; it keeps everything accepted before.
	ErrFull = errors.New("the store accepts nothing")
)

var codeOf = []struct {
	err  error
	code codes.Code
}{
	{ErrConflict, codes.Aborted},
	{ErrDenied, codes.PermissionDenied},
	{ErrStale, codes.Unauthenticated},
	{ErrNotFound, codes.NotFound},
	{ErrInvalid, codes.InvalidArgument},
	{ErrTooLarge, codes.OutOfRange},
	{ErrFull, codes.ResourceExhausted},
	{ErrUnavailable, codes.FailedPrecondition},
	{ErrGone, codes.Unavailable},
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

// Code returns the gRPC code of err: OK for nil, Unknown without a sentinel.
func Code(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	for _, c := range codeOf {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return status.Code(err)
}

// ToStatus converts err to a gRPC status error.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(Code(err), err.Error())
}

// FromStatus converts the error of a gRPC call to one that wraps a sentinel. A
// broken transport wraps ErrGone.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	return fromCode(s.Code(), s.Message())
}

// ToProto converts err to the error of a frame.
func ToProto(err error) *busv1.Error {
	if err == nil {
		return nil
	}
	return &busv1.Error{Code: int32(Code(err)), Message: err.Error()}
}

// FromProto converts the error of a frame to one that wraps a sentinel.
func FromProto(e *busv1.Error) error {
	if e == nil {
		return nil
	}
	return fromCode(codes.Code(e.GetCode()), e.GetMessage())
}

func fromCode(code codes.Code, message string) error {
	for _, c := range codeOf {
		if c.code == code {
			return &wireError{message: message, kind: c.err}
		}
	}
	return fmt.Errorf("%s (%s)", message, code)
}

// wireError keeps the message of the other side, which usually contains the
// sentinel's text already.
type wireError struct {
	message string
	kind    error
}

func (e *wireError) Error() string { return e.message }
func (e *wireError) Unwrap() error { return e.kind }
