package slackchannel

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// failureKind is the meaning of an error of a call.
type failureKind int

const (
	refused     failureKind = iota // Slack will never accept the request
	malformed                      // refused because of its blocks
	unreachable                    // the request did not reach Slack
	unknown                        // Slack may have processed the request
	serverError                    // Slack has a problem
	limited                        // too many requests
	badToken                       // Slack does not accept a token
)

// Errors of the Web API (docs.slack.dev/reference/methods) by their kinds.
var (
	malformedErrors = []string{
		"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "no_text",
	}
	tokenErrors = []string{
		"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive", "no_permission",
		"not_allowed_token_type", "missing_scope", "team_access_not_granted", "access_denied",
	}
	busyErrors    = []string{"service_unavailable", "request_timeout", "team_added_to_org"}
	unknownErrors = []string{"internal_error", "fatal_error"} // "some aspect may have succeeded"
	limitErrors   = []string{"ratelimited", "rate_limited", "message_limit_exceeded"}
)

// codeOf returns Slack's code of an error; empty: Slack did not refuse the call.
func codeOf(err error) string {
	if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		return answer.Err
	}
	return ""
}

// classify returns the kind of an error; after is Slack's Retry-After.
func classify(err error) (kind failureKind, after time.Duration) {
	if many, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return limited, max(many.RetryAfter, time.Second)
	}
	if call, ok := errors.AsType[*httpcall.Error](err); ok {
		switch {
		case call.Sent:
			return unknown, 0
		case call.Status != 0:
			return serverError, 0
		}
		return unreachable, 0
	}
	if status, ok := errors.AsType[slack.StatusCodeError](err); ok {
		switch {
		case status.Code == http.StatusTooManyRequests:
			return limited, time.Second
		case status.Code >= http.StatusInternalServerError:
			return serverError, 0
		}
		return refused, 0
	}
	switch code := codeOf(err); {
	case code == "" && errors.Is(err, context.Canceled), code == "" && errors.Is(err, context.DeadlineExceeded):
		return unknown, 0
	case code == "", slices.Contains(unknownErrors, code):
		return unknown, 0
	case slices.Contains(malformedErrors, code):
		return malformed, 0
	case slices.Contains(tokenErrors, code):
		return badToken, 0
	case slices.Contains(busyErrors, code):
		return serverError, 0
	case slices.Contains(limitErrors, code):
		return limited, time.Second
	}
	return refused, 0
}
