package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/contract"
)

// noKey returns the text of a missing key.
func (p *provider) noKey() string {
	return "no key is set: set " + p.config.Key + " in the environment or in secrets.env"
}

// Kind is the kind of a Failure.
type Kind int

// The kinds.
const (
	Unavailable  Kind = iota // the server cannot be reached, or fails
	Broken                   // the connection broke in the middle of the answer
	Unconfigured             // there is no key
	KeyRefused               // the key is invalid
	Denied                   // the key does not allow this
	NoModel                  // the model does not exist
	BadRequest               // the server refuses the request
	TooLong                  // the conversation is too long for the model
	RateLimited              // too many requests, or no quota left
	Stalled                  // the server stopped sending, or took too long
	BadAnswer                // the server's answer is invalid
)

// Failure is the error of a completion. Its text is for people in chats: it contains
// neither the key nor the address.
type Failure struct {
	Kind Kind
	text string
}

func (f *Failure) Error() string { return f.text }

// Unwrap returns contract.ErrUnavailable if a later retry may succeed, otherwise
// contract.ErrInvalid.
func (f *Failure) Unwrap() error {
	switch f.Kind {
	case NoModel, BadRequest, TooLong:
		return contract.ErrInvalid
	default:
		return contract.ErrUnavailable
	}
}

func failf(k Kind, format string, args ...any) *Failure {
	return &Failure{Kind: k, text: fmt.Sprintf(format, args...)}
}

func kindOf(err error) Kind {
	if f := (*Failure)(nil); errors.As(err, &f) {
		return f.Kind
	}
	return Unavailable
}

// explain returns the failure of an error, without the key and the address.
func (p *provider) explain(ctx context.Context, model string, err error) *Failure {
	f := p.failure(ctx, model, err)
	if p.key != "" {
		f.text = strings.ReplaceAll(f.text, p.key, "***")
	}
	f.text = strings.ReplaceAll(strings.ReplaceAll(f.text, p.config.BaseURL, p.who), p.where, p.who)
	return f
}

func (p *provider) failure(ctx context.Context, model string, err error) *Failure {
	var (
		apiErr     *api.APIError
		requestErr *api.RequestError
		urlErr     *url.Error
		netErr     net.Error
		syntaxErr  *json.SyntaxError
		typeErr    *json.UnmarshalTypeError
	)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStalled):
		return failf(Stalled, "%s stopped sending for %s in the middle of an answer of %s: try again",
			p.who, show(p.config.IdleTimeout), model)
	case errors.Is(cause, errTooLong):
		return failf(Stalled, "%s did not finish its answer within %s: try again, or choose a faster model than %s",
			p.who, show(p.config.Timeout), model)
	case errors.As(err, &apiErr) && apiErr.HTTPStatusCode != 0:
		return p.status(model, apiErr.HTTPStatusCode, apiErr.Message, fmt.Sprint(apiErr.Code))
	case errors.As(err, &apiErr):
		return failf(Unavailable, "%s stopped its answer with an error: %s", p.who, excerpt(apiErr.Message))
	case errors.As(err, &requestErr):
		return p.status(model, requestErr.HTTPStatusCode, string(requestErr.Body), "")
	case errors.Is(err, errRedirect):
		return failf(BadRequest, "%s redirects to another address, which gets neither the key nor the request: correct %s",
			p.who, urlSetting(p.id))
	case errors.Is(err, errNoSSE):
		return failf(BadAnswer, "%s is not an OpenAI-compatible API (%v): check %s", p.who, err, urlSetting(p.id))
	case errors.Is(err, errCutOff), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return failf(Broken, "%s closed the connection in the middle of an answer of %s: try again", p.who,
			model)
	case errors.Is(err, errInvalid), errors.As(err, &syntaxErr), errors.As(err, &typeErr),
		errors.Is(err, api.ErrTooManyEmptyStreamMessages):
		return failf(BadAnswer, "the answer of %s from %s cannot be used: %s", model, p.who, excerpt(err.Error()))
	case errors.As(err, &netErr) && netErr.Timeout() && !dialing(err):
		return failf(Stalled, "%s did not begin to answer within %s: try again", p.who, show(p.config.IdleTimeout))
	case errors.As(err, &urlErr):
		return failf(Unavailable, "%s cannot be reached (%s): check the network and %s",
			p.who, connectionError(urlErr.Err), urlSetting(p.id))
	case errors.As(err, &netErr):
		return failf(Broken, "the connection to %s broke (%s): try again", p.who, connectionError(err))
	}
	return failf(BadRequest, "the request to %s for %s failed: %s", p.who, model, excerpt(err.Error()))
}

// status returns the failure of an HTTP status. It quotes the server's message
// where it helps, but not for a refused key, which the message may contain.
func (p *provider) status(model string, status int, message, code string) *Failure {
	lower := strings.ToLower(message + " " + code)
	quote := excerpt(message)
	switch {
	case status == http.StatusUnauthorized:
		if p.config.Key == "" {
			return failf(KeyRefused, "%s needs a key: put it in secrets.env as NAME=key, "+
				"and its name in models.providers.%s.key", p.who, p.id)
		}
		return failf(KeyRefused, "the key in %s was refused by %s: set a valid one", p.config.Key, p.who)
	case status == http.StatusForbidden:
		return failf(Denied, "%s does not allow this with %s: %s", p.who, p.theKey(), quote)
	case status == http.StatusNotFound && !strings.Contains(lower, "model"):
		return failf(NoModel, "%s has no chat completions API, or no model %s: check %s and %s",
			p.who, model, urlSetting(p.id), modelSetting(p.id))
	case status == http.StatusNotFound, strings.Contains(lower, "model_not_found"):
		return failf(NoModel, "%s has no model %s, or not for this key: check %s", p.who, model, modelSetting(p.id))
	case strings.Contains(lower, "insufficient_quota"):
		return failf(RateLimited, "the account of %s has no quota left at %s: check its plan and billing",
			p.theKey(), p.who)
	case status == http.StatusTooManyRequests:
		return failf(RateLimited, "%s still refuses requests (429) after %s: try again in a while",
			p.who, p.attempts())
	case strings.Contains(lower, "context_length_exceeded"):
		return failf(TooLong, "the conversation is too long for %s: start a new one with /new", model)
	case status >= http.StatusInternalServerError:
		return failf(Unavailable, "%s still fails (%d) after %s: try again later", p.who, status, p.attempts())
	}
	return failf(BadRequest, "%s refused the request for %s (%d): %s", p.who, model, status, quote)
}

// theKey names the key for people.
func (p *provider) theKey() string {
	if p.config.Key == "" {
		return "no key"
	}
	return "the key in " + p.config.Key
}

func (p *provider) attempts() string {
	if n := *p.config.Retries + 1; n > 1 {
		return fmt.Sprintf("up to %d attempts", n)
	}
	return "one attempt"
}

func show(d Duration) string { return time.Duration(d).String() }

// connectionError returns the reason of a failed connection without the address.
func connectionError(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "unknown host " + dns.Name
	}
	if o := (*net.OpError)(nil); errors.As(err, &o) && o.Err != nil {
		return excerpt(o.Err.Error())
	}
	return excerpt(err.Error())
}

// excerpt returns the beginning of a text on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(utf8Text(text)), " ")
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	if text == "" {
		return "no reason given"
	}
	return text
}
