package telegramchannel

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// failureKind is the meaning of an error of a call.
type failureKind int

const (
	refused      failureKind = iota // Telegram will never accept the request
	malformed                       // refused because of its content, not its chat
	unreachable                     // the request did not reach Telegram
	unknown                         // Telegram may have processed the request
	serverError                     // Telegram has a problem
	limited                         // too many requests
	badTokenKind                    // Telegram does not know the token
	conflicting                     // another program polls, or a webhook is set
	migrated                        // the group has a new id
)

// otherErrorPrefix begins the library's error for a code without its own error.
const otherErrorPrefix = "error response from telegram"

// classify returns the kind of an error; after is Telegram's retry_after.
func classify(err error) (kind failureKind, after time.Duration) {
	var call *httpcall.Error
	var many *bot.TooManyRequestsError
	var moved *bot.MigrateError
	switch {
	case errors.As(err, &many):
		return limited, time.Duration(max(many.RetryAfter, 1)) * time.Second
	case errors.As(err, &moved):
		return migrated, 0
	case errors.As(err, &call):
		switch {
		case call.Sent:
			return unknown, 0
		case call.Status == http.StatusTooManyRequests:
			return limited, time.Second
		case call.Status != 0:
			return serverError, 0
		}
		return unreachable, 0
	case errors.Is(err, bot.ErrorUnauthorized), errors.Is(err, bot.ErrorNotFound):
		return badTokenKind, 0
	case errors.Is(err, bot.ErrorConflict):
		return conflicting, 0
	case errors.Is(err, bot.ErrorBadRequest):
		return malformed, 0
	case errors.Is(err, bot.ErrorForbidden), strings.HasPrefix(err.Error(), otherErrorPrefix):
		return refused, 0
	}
	return unknown, 0
}
