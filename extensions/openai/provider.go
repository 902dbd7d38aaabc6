package openai

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/sdk"
)

// provider is the API at one address with one key.
type provider struct {
	id     string
	config Config
	key    string
	where  string // the address, for the log
	who    string // the server, for error texts: people in chats read them
	openAI bool   // the server is OpenAI's own
	tools  toolsets
	client *api.Client
	http   *retrying
	first  atomic.Pointer[string] // the first model that the server listed
}

func newProvider(id string, c Config, key string) (*provider, error) {
	c, err := c.resolved(id)
	if err != nil {
		return nil, err
	}
	key = strings.TrimSpace(key)
	p := &provider{id: id, config: c, key: key, http: newRetrying(c)}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, err
	}
	p.where, p.openAI, p.who = u.Redacted(), u.Hostname() == "api.openai.com", "the server of "+id
	switch {
	case p.openAI:
		p.who = "OpenAI"
	case id == ID:
		p.who = "the model's server"
	}
	settings := api.DefaultConfig(key)
	settings.BaseURL = c.BaseURL
	settings.HTTPClient = p.http
	p.client = api.NewClientWithConfig(settings)
	return p, nil
}

func (p *provider) close() { p.http.close() }

// keyMissing reports whether the configuration names a key that is not set.
func (p *provider) keyMissing() bool { return p.key == "" && p.config.Key != "" }

// defaultModel returns the configured model, else the first that the server lists.
func (p *provider) defaultModel(ctx context.Context) (string, error) {
	if p.config.Model != "" {
		return p.config.Model, nil
	}
	if known := p.first.Load(); known != nil {
		return *known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := p.client.ListModels(ctx)
	switch {
	case err != nil:
		return "", p.explain(ctx, "its default model", err)
	case len(list.Models) == 0:
		return "", failf(NoModel, "%s lists no models: load one there, or name it in %s", p.who, modelSetting(p.id))
	}
	p.first.Store(&list.Models[0].ID)
	return list.Models[0].ID, nil
}

// listTimeout bounds the request for the list of models.
const listTimeout = 15 * time.Second

// Causes of cancelled contexts.
var (
	errStalled = errors.New("the stream stalled")
	errTooLong = errors.New("the completion took too long")
)

// complete runs one completion. It returns a *Failure, or the error of emit or of
// a ctx that the caller ended. An answer that breaks off before anything of it was
// passed on is asked for again.
func (p *provider) complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	if p.keyMissing() {
		return failf(Unconfigured, "%s", p.noKey())
	}
	model := r.GetModel()
	if model == "" || model == "default" {
		var err error
		if model, err = p.defaultModel(ctx); err != nil {
			return err
		}
	}
	request := p.request(r, model)
	tools, err := p.tools.encoded(r.GetTools())
	if err != nil {
		return p.explain(ctx, model, fmt.Errorf("encode tools: %w", err))
	}
	body := encode(&request, tools)

	total, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer time.AfterFunc(time.Duration(p.config.Timeout), func() { end(errTooLong) }).Stop()
	for attempt := 0; ; attempt++ {
		passedOn, err := p.attempt(total, model, body, emit)
		if _, failed := errors.AsType[*Failure](err); failed && ctx.Err() != nil { // the caller ended it
			return context.Cause(ctx)
		}
		if err == nil || passedOn || kindOf(err) != Broken || attempt >= *p.config.Retries {
			return err
		}
		select {
		case <-time.After(backoff(minWait, maxWait, attempt, nil)):
		case <-total.Done():
		}
	}
}

// attempt asks once. passedOn reports whether emit got something.
func (p *provider) attempt(
	ctx context.Context, model string, body []byte, emit func(*sdk.Delta) error,
) (passedOn bool, err error) {
	inner, cancel := withoutCancel(ctx)
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	var stream *api.ChatCompletionStream
	complete := false
	defer func() {
		unlink()
		if complete {
			go release(stream, cancel)
			return
		}
		cancel(nil)
		if stream != nil {
			_ = stream.Close()
		}
	}()
	stream, err = p.client.CreateChatCompletionStream(withBody(inner, body), api.ChatCompletionRequest{Model: model})
	if err == nil {
		err = checkContentType(stream.Header().Get("Content-Type"))
	}
	if err != nil {
		return false, p.explain(inner, model, err)
	}
	idle := time.AfterFunc(time.Duration(p.config.IdleTimeout), func() { cancel(errStalled) })
	defer idle.Stop()

	a := answer{emit: emit, model: p.id + "/" + model, maxCalls: p.config.MaxCalls}
	for {
		chunk, err := stream.Recv()
		if err == nil {
			idle.Reset(time.Duration(p.config.IdleTimeout))
			err = a.add(&chunk)
		} else if errors.Is(err, errEOF) {
			err = a.end()
			if err == nil {
				complete = true
				return true, nil
			}
		}
		if e := (*emitError)(nil); errors.As(err, &e) {
			return true, e.err
		}
		if err != nil {
			if e := a.spent(); e != nil {
				return true, e
			}
			return a.started, p.explain(inner, model, err)
		}
	}
}

// withoutCancel returns ctx without its cancellation but with its deadline, so
// that the rest of an answer can be read after complete returns.
func withoutCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	inner, stop := context.WithoutCancel(ctx), func() {}
	if deadline, ok := ctx.Deadline(); ok {
		inner, stop = context.WithDeadline(inner, deadline)
	}
	inner, cancel := context.WithCancelCause(inner)
	return inner, func(cause error) {
		cancel(cause)
		stop()
	}
}

// endTimeout is how long release waits for the end of a complete answer.
const endTimeout = time.Second

// release reads the end of a complete answer, so that its connection can be
// reused. After endTimeout it closes the connection.
func release(stream *api.ChatCompletionStream, cancel context.CancelCauseFunc) {
	timer := time.AfterFunc(endTimeout, func() { cancel(nil) })
	_ = stream.Close()
	timer.Stop()
	cancel(nil)
}
