package page

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// StatusOf is the HTTP status of an error.
func StatusOf(err error) int {
	for _, s := range []struct {
		kind   error
		status int
	}{
		{contract.ErrDenied, http.StatusForbidden},
		{contract.ErrNotFound, http.StatusNotFound},
		{contract.ErrInvalid, http.StatusBadRequest},
		{contract.ErrTooLarge, http.StatusRequestEntityTooLarge},
		{contract.ErrConflict, http.StatusConflict},
		{contract.ErrFull, http.StatusInsufficientStorage},
		{contract.ErrUnavailable, http.StatusServiceUnavailable},
		{contract.ErrGone, http.StatusServiceUnavailable},
	} {
		if errors.Is(err, s.kind) {
			return s.status
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusInternalServerError
}

// Problem answers a request of a script with an error, as RFC 9457 has it.
func Problem(w http.ResponseWriter, r *http.Request, err error) {
	status := StatusOf(err)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(status), "status": status,
		"detail": words.Translate(door.From(r.Context()).Language, err.Error()),
	})
}

// Reply answers a request of a script with a value.
func Reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
