package telegramchannel

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"
)

// failure is what an error of a call means.
type failure int

const (
	refused     failure = iota // Telegram will never accept it
	malformed                  // refused for what it contains, not for where it goes
	unreachable                // it did not get to Telegram
	unknown                    // Telegram may have processed it
	serverError                // Telegram is in trouble
	limited                    // too many requests
	tokenWrong                 // Telegram does not know the token
	conflicting                // another program polls, or there is a webhook
	migrated                   // the group has another id now
)

// otherAnswer begins the library's error for an answer of the Bot API with a
// code that it has no error of its own for.
const otherAnswer = "error response from telegram"

// classify says what an error of a call means; after is Telegram's wish, if it has one.
func classify(err error) (kind failure, after time.Duration) {
	var call *callError
	var many *bot.TooManyRequestsError
	var moved *bot.MigrateError
	switch {
	case errors.As(err, &many):
		return limited, time.Duration(max(many.RetryAfter, 1)) * time.Second
	case errors.As(err, &moved):
		return migrated, 0
	case errors.As(err, &call):
		switch {
		case call.sent:
			return unknown, 0
		case call.status == http.StatusTooManyRequests:
			return limited, time.Second
		case call.status != 0:
			return serverError, 0
		}
		return unreachable, 0
	case errors.Is(err, bot.ErrorUnauthorized), errors.Is(err, bot.ErrorNotFound):
		return tokenWrong, 0
	case errors.Is(err, bot.ErrorConflict):
		return conflicting, 0
	case errors.Is(err, bot.ErrorBadRequest):
		return malformed, 0
	case errors.Is(err, bot.ErrorForbidden), strings.HasPrefix(err.Error(), otherAnswer):
		return refused, 0
	}
	return unknown, 0
}

// backoff is the pause before the nth attempt after a failure, n from 1.
func backoff(n int) time.Duration {
	const first, most = 200 * time.Millisecond, 15 * time.Second
	if n > 8 {
		return most
	}
	return min(first<<(n-1), most)
}
