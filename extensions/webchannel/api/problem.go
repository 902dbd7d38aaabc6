package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/httpstatus"
)

// Types of problems that a status alone does not tell.
const (
	typePrefix = "urn:switchboard:problem:"

	typeScope      = typePrefix + "scope"                // the token or the person may not do it
	typeKeyReused  = typePrefix + "idempotency-key"      // it came with another request before
	typeKeyRunning = typePrefix + "idempotency-running"  // its first request is being handled
	typeStreams    = typePrefix + "too-many-streams"     // of this token
	typeDown       = typePrefix + "extension-not-active" // the extension with the data does not run
)

// problem is the error of an operation.
func problem(status int, kind, detail string) *huma.ErrorModel {
	if kind == "" {
		kind = "about:blank"
	}
	return &huma.ErrorModel{Type: kind, Title: http.StatusText(status), Status: status, Detail: detail}
}

// problemOf is an error as the API answers it.
func problemOf(err error) huma.StatusError {
	if known, ok := errors.AsType[huma.StatusError](err); ok {
		return known
	}
	return problem(httpstatus.Of(err), "", err.Error())
}

// writeProblem answers a request with a problem.
func writeProblem(w http.ResponseWriter, p *huma.ErrorModel) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	if p.Status == http.StatusTooManyRequests || p.Type == typeKeyRunning {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client is gone
}

// retryAfter is how many seconds a refused client waits.
const retryAfter = 1
