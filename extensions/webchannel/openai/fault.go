package openaiapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/switchboard-run/switchboard/contract"
)

// fault is an error in the protocol's form.
type fault struct {
	status int
	text   string
	kind   string // empty: by the status
	param  string // the field that is wrong; empty: none
	code   string
}

func (f *fault) Error() string { return f.text }

// invalid is a fault of a field.
func invalid(param, format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, param: param, code: "invalid_value", text: fmt.Sprintf(format, args...)}
}

// unsupported is the fault of a field that asks for what agents can't do.
func unsupported(param, format string, args ...any) *fault {
	return &fault{
		status: http.StatusBadRequest, param: param, code: "unsupported_parameter", text: fmt.Sprintf(format, args...),
	}
}

// faultOf returns an error in the protocol's form. What is no fault of the client is logged.
func (s *server) faultOf(err error) *fault {
	var f *fault
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &tooLarge):
		return &fault{status: http.StatusRequestEntityTooLarge, code: "request_too_large",
			text: fmt.Sprintf("The request has more than %d bytes.", tooLarge.Limit)}
	case errors.Is(err, contract.ErrTooLarge):
		return &fault{status: http.StatusRequestEntityTooLarge, code: "request_too_large", text: err.Error()}
	case errors.Is(err, contract.ErrInvalid):
		return &fault{status: http.StatusBadRequest, code: "invalid_value", text: err.Error()}
	case errors.Is(err, contract.ErrDenied):
		return &fault{status: http.StatusForbidden, code: "forbidden", text: err.Error()}
	case errors.Is(err, contract.ErrNotFound):
		return &fault{status: http.StatusNotFound, code: "not_found", text: err.Error()}
	case errors.Is(err, contract.ErrUnavailable), errors.Is(err, contract.ErrGone), errors.Is(err, contract.ErrFull):
		return &fault{status: http.StatusServiceUnavailable, code: "unavailable",
			text: "The assistant isn't available now: " + err.Error()}
	}
	s.Log.Error("answer a request of a client of the OpenAI-compatible API", "error", err)
	return &fault{status: http.StatusInternalServerError, code: "internal_error",
		text: "Something went wrong; the log of the extension web_channel has it."}
}

// body is the object of the protocol.
func (f *fault) body() any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	kind := f.kind
	if kind == "" {
		kind = "invalid_request_error"
		if f.status >= http.StatusInternalServerError {
			kind = "server_error"
		}
	}
	return map[string]any{"message": f.text, "type": kind, "param": orNull(f.param), "code": orNull(f.code)}
}

func (f *fault) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": f.body()})
}

func writeJSON(w http.ResponseWriter, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(append(text, '\n'))
	return err
}

// readJSON reads the body of a request.
func readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	var tooLarge *http.MaxBytesError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil, errors.As(err, &tooLarge):
		return err
	case errors.As(err, &mistyped):
		return &fault{status: http.StatusBadRequest, param: mistyped.Field, code: "invalid_type",
			text: fmt.Sprintf("Invalid type for '%s': a JSON %s doesn't fit.", mistyped.Field, mistyped.Value)}
	}
	return &fault{status: http.StatusBadRequest, code: "invalid_json", text: "The body isn't the JSON of a request: " +
		err.Error()}
}
