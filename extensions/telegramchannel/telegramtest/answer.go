package telegramtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// apiError is an answer with ok=false.
type apiError struct {
	code        int
	description string
	retryAfter  int
	migrateTo   int64
}

func badRequest(format string, args ...any) *apiError {
	return &apiError{code: http.StatusBadRequest, description: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func forbidden(text string) *apiError {
	return &apiError{code: http.StatusForbidden, description: "Forbidden: " + text}
}

func conflict(text string) *apiError {
	return &apiError{code: http.StatusConflict, description: "Conflict: " + text}
}

func tooMany(seconds int) *apiError {
	return &apiError{
		code:        http.StatusTooManyRequests,
		description: "Too Many Requests: retry after " + strconv.Itoa(seconds),
		retryAfter:  seconds,
	}
}

type errorParameters struct {
	RetryAfter int   `json:"retry_after,omitempty"`
	MigrateTo  int64 `json:"migrate_to_chat_id,omitempty"`
}

type envelope struct {
	OK          bool             `json:"ok"`
	Result      any              `json:"result,omitempty"`
	ErrorCode   int              `json:"error_code,omitempty"`
	Description string           `json:"description,omitempty"`
	Parameters  *errorParameters `json:"parameters,omitempty"`
}

// encode renders the answer to a call: result, or refusal if there is one.
func encode(result any, refusal *apiError) (status int, body []byte) {
	e := envelope{OK: true, Result: result}
	status = http.StatusOK
	if refusal != nil {
		status = refusal.code
		e = envelope{ErrorCode: refusal.code, Description: refusal.description}
		if refusal.retryAfter != 0 || refusal.migrateTo != 0 {
			e.Parameters = &errorParameters{RetryAfter: refusal.retryAfter, MigrateTo: refusal.migrateTo}
		}
	}
	body, err := json.Marshal(e)
	if err != nil {
		return http.StatusInternalServerError, []byte(`{"ok":false,"error_code":500,"description":"Internal Server Error"}`)
	}
	return status, body
}

func write(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON for a test
}
