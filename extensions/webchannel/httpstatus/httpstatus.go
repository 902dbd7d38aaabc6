// Package httpstatus maps errors to HTTP status codes, the same for the page, the board and the API.
package httpstatus

import (
	"context"
	"errors"
	"net/http"

	"github.com/switchboard-run/switchboard/contract"
)

// Of returns the status of a response to a request that failed with err: 500 without a sentinel of the contract.
func Of(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

var statuses = []struct {
	err    error
	status int
}{
	{contract.ErrNotFound, http.StatusNotFound},
	{contract.ErrInvalid, http.StatusUnprocessableEntity},
	{contract.ErrDenied, http.StatusForbidden},
	{contract.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{contract.ErrConflict, http.StatusConflict},
	{contract.ErrFull, http.StatusInsufficientStorage},
	{contract.ErrUnavailable, http.StatusServiceUnavailable},
	{contract.ErrGone, http.StatusServiceUnavailable},
	{context.Canceled, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
}
