package modelapi

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// noKey returns the text of a missing key.
func (s *Server) noKey() string {
	return words.Sprintf("no key is set: set %s in the environment or in secrets.env", s.config.Key)
}

// FailureKind is the kind of a Failure.
type FailureKind int

// The kinds.
const (
	Unavailable  FailureKind = iota // the server cannot be reached, or fails
	Broken                          // the connection broke in the middle of the answer
	Unconfigured                    // there is no key
	KeyRefused                      // the key is invalid
	Denied                          // the key does not allow this
	NoModel                         // the model does not exist
	BadRequest                      // the server refuses the request
	TooLong                         // the conversation is too long for the model
	RateLimited                     // too many requests, or no quota left
	Stalled                         // the server stopped sending, or took too long
	BadAnswer                       // the server's answer is invalid
)

// Failure is the error of a completion. Its text is for people in chats: it contains
// neither the key nor the address.
type Failure struct {
	Kind FailureKind
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

func failf(k FailureKind, format string, args ...any) *Failure {
	return &Failure{Kind: k, text: words.Sprintf(format, args...)}
}

// KindOf returns the kind of an error; Unavailable if it is not a Failure.
func KindOf(err error) FailureKind {
	if f := (*Failure)(nil); errors.As(err, &f) {
		return f.Kind
	}
	return Unavailable
}

// explain returns the failure of an error, without the key and the address.
func (s *Server) explain(ctx context.Context, model string, err error) *Failure {
	f := s.failure(ctx, model, err)
	if s.key != "" {
		f.text = strings.ReplaceAll(f.text, s.key, "***")
	}
	f.text = strings.ReplaceAll(strings.ReplaceAll(f.text, s.config.BaseURL, s.who), s.where, s.who)
	return f
}

func (s *Server) failure(ctx context.Context, model string, err error) *Failure {
	var (
		statusErr *StatusError
		urlErr    *url.Error
		netErr    net.Error
		syntaxErr *json.SyntaxError
		typeErr   *json.UnmarshalTypeError
	)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStalled):
		return failf(Stalled, "%v stopped sending for %v in the middle of an answer of %s: try again",
			s.who, show(s.config.IdleTimeout), model)
	case errors.Is(cause, errTooLong):
		return failf(Stalled, "%v did not finish its answer within %v: try again, or choose a faster model than %s",
			s.who, show(s.config.Timeout), model)
	case errors.As(err, &statusErr):
		return s.status(model, statusErr)
	case errors.Is(err, errRedirect):
		return failf(BadRequest, "%v redirects to another address, which gets neither the key nor the request: correct %v",
			s.who, s.urlSetting())
	case errors.Is(err, errNoSSE):
		return failf(BadAnswer, "%v does not have %v (%v): check %v", s.who, s.kind.API, err, s.urlSetting())
	case errors.Is(err, errCutOff), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return failf(Broken, "%v closed the connection in the middle of an answer of %s: try again", s.who,
			model)
	case errors.Is(err, errInvalid), errors.As(err, &syntaxErr), errors.As(err, &typeErr),
		errors.Is(err, bufio.ErrTooLong):
		return failf(BadAnswer, "the answer of %s from %v cannot be used: %v", model, s.who, excerpt(err.Error()))
	case errors.As(err, &netErr) && netErr.Timeout() && !dialing(err):
		return failf(Stalled, "%v did not begin to answer within %v: try again", s.who, show(s.config.IdleTimeout))
	case errors.As(err, &urlErr):
		return failf(Unavailable, "%v cannot be reached (%v): check the network and %v",
			s.who, connectionError(urlErr.Err), s.urlSetting())
	case errors.As(err, &netErr):
		return failf(Broken, "the connection to %v broke (%v): try again", s.who, connectionError(err))
	}
	return failf(BadRequest, "the request to %v for %s failed: %v", s.who, model, excerpt(err.Error()))
}

// StatusError is an error that the server reports: as the status of a response, or, with
// Status 0, in the middle of a stream.
type StatusError struct {
	Status              int
	Message, Type, Code string
}

func (e *StatusError) Error() string { return fmt.Sprintf("%d %s", e.Status, e.Message) }

// maxError bounds the body of an error, in bytes.
const maxError = 64 << 10

// statusError returns the error of a response.
func statusError(resp *http.Response) *StatusError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what there is of it
	e := ReportedError(body)
	e.Status = resp.StatusCode
	return e
}

// ReportedError parses what servers send as an error: {"error": {message, type, code}},
// with fewer fields, or any text.
func ReportedError(body []byte) *StatusError {
	e := &StatusError{Message: string(body)}
	var full struct {
		Error struct {
			Message, Type string
			Code          any
		}
	}
	var short struct{ Error, Message, Detail string }
	switch {
	case json.Unmarshal(body, &full) == nil && full.Error.Message != "":
		e.Message, e.Type = full.Error.Message, full.Error.Type
		if full.Error.Code != nil {
			e.Code = fmt.Sprint(full.Error.Code)
		}
	case json.Unmarshal(body, &short) == nil:
		e.Message = cmp.Or(short.Error, short.Message, short.Detail, e.Message)
	}
	return e
}

// outOfMoney and tooLong recognize what servers say without a status of its own.
func outOfMoney(text string) bool {
	return contains(text, "insufficient_quota", "credit balance is too low", "insufficient credits")
}

func tooLong(text string) bool {
	return contains(text, "context_length_exceeded", "prompt is too long", "exceed_context_size", "maximum context length")
}

func contains(text string, parts ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(text, p) })
}

// status returns the failure of an error of the server. It quotes the server's message
// where it helps, but not for a refused key, which the message may contain.
func (s *Server) status(model string, e *StatusError) *Failure {
	text := strings.Join([]string{e.Message, e.Type, e.Code}, " ")
	quote := excerpt(e.Message)
	switch {
	case outOfMoney(text), e.Status == http.StatusPaymentRequired:
		return failf(RateLimited, "the account of %v has no quota left at %v: check its plan and billing",
			s.theKey(), s.who)
	case tooLong(text):
		return failf(TooLong, "the conversation is too long for %s: start a new one with /new", model)
	case e.Type == "overloaded_error" && e.Status == 0:
		return failf(Broken, "%v is overloaded: try again in a while", s.who)
	case e.Status == 0:
		return failf(Unavailable, "%v stopped its answer with an error: %v", s.who, quote)
	case e.Status == http.StatusUnauthorized && s.config.Key == "":
		return failf(KeyRefused, "%v needs a key: put it in secrets.env as NAME=key, "+
			"and its name in models.providers.%s.key", s.who, s.id)
	case e.Status == http.StatusUnauthorized:
		return failf(KeyRefused, "the key in %s was refused by %v: set a valid one", s.config.Key, s.who)
	case e.Status == http.StatusForbidden:
		return failf(Denied, "%v does not allow this with %v: %v", s.who, s.theKey(), quote)
	case e.Status == http.StatusNotFound && !contains(text, "model"):
		return failf(NoModel, "%v does not have %v, or no model %s: check %v and %v",
			s.who, s.kind.API, model, s.urlSetting(), s.modelSetting())
	case e.Status == http.StatusNotFound, contains(text, "model_not_found"):
		return failf(NoModel, "%v has no model %s, or not for this key: check %v", s.who, model, s.modelSetting())
	case e.Status == http.StatusTooManyRequests:
		return failf(RateLimited, "%v still refuses requests (429) after %v: try again in a while",
			s.who, s.attempts())
	case e.Status >= http.StatusInternalServerError && contains(text, "image", "mmproj", "multimodal"):
		return failf(BadRequest, "%v cannot use the images (%d): %v", s.who, e.Status, quote)
	case e.Status >= http.StatusInternalServerError:
		return failf(Unavailable, "%v still fails (%d) after %v: try again later", s.who, e.Status, s.attempts())
	}
	return failf(BadRequest, "%v refused the request for %s (%d): %v", s.who, model, e.Status, quote)
}

// theKey names the key for people.
func (s *Server) theKey() string {
	if s.config.Key == "" {
		return words.Sprintf("no key")
	}
	return words.Sprintf("the key in %s", s.config.Key)
}

func (s *Server) attempts() string {
	if n := *s.config.Retries + 1; n > 1 {
		return words.Sprintf("up to %d attempts", n)
	}
	return words.Sprintf("one attempt")
}

func show(d Duration) string { return words.Span(time.Duration(d)) }

// connectionError returns the reason of a failed connection without the address.
func connectionError(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return words.Sprintf("unknown host %s", dns.Name)
	}
	if o := (*net.OpError)(nil); errors.As(err, &o) && o.Err != nil {
		return excerpt(o.Err.Error())
	}
	return excerpt(err.Error())
}

// excerpt returns the beginning of a text on one line.
func excerpt(text string) string {
	text = strings.Join(strings.Fields(Text(text)), " ")
	if r := []rune(text); len(r) > 300 {
		text = string(r[:300]) + "…"
	}
	if text == "" {
		return words.Sprintf("no reason given")
	}
	return text
}
