package openai

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	api "github.com/sashabaranov/go-openai"

	"github.com/switchboard-run/switchboard/sdk"
)

// provider is the API at one address with one key.
type provider struct {
	config Config
	key    string
	where  string // the address, for people
	own    bool   // OpenAI's own server
	tools  toolsets
	client *api.Client
	http   *retrying
}

func newProvider(c Config, key string) (*provider, error) {
	c, err := c.resolved()
	if err != nil {
		return nil, err
	}
	key = strings.TrimSpace(key)
	p := &provider{config: c, key: key, http: newRetrying(c)}
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, err
	}
	p.where, p.own = u.Redacted(), u.Hostname() == "api.openai.com"
	settings := api.DefaultConfig(key)
	settings.BaseURL = c.BaseURL
	settings.HTTPClient = p.http
	p.client = api.NewClientWithConfig(settings)
	return p, nil
}

func (p *provider) close() { p.http.close() }

// Causes of a context that this package ends.
var (
	errStalled = errors.New("the stream stalled")
	errTooLong = errors.New("the completion took too long")
)

// complete runs one completion. Every error it returns is a *Failure, but for
// those of emit and of a ctx that the caller ended.
func (p *provider) complete(ctx context.Context, r *sdk.CompleteRequest, emit func(*sdk.Delta) error) error {
	if p.key == "" {
		return failf(Unconfigured, "%s", noKey)
	}
	model := r.GetModel()
	if model == "" || model == "default" {
		model = p.config.Model
	}
	request := p.request(r, model)
	tools, err := p.tools.encoded(r.GetTools())
	if err != nil {
		return p.explain(ctx, model, fmt.Errorf("encode the tools: %w", err))
	}
	body := encode(&request, tools)

	inner, cancel := outliving(ctx)
	unlink := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	var stream *api.ChatCompletionStream
	whole := false
	defer func() {
		unlink()
		if whole {
			go release(stream, cancel)
			return
		}
		cancel(nil)
		if stream != nil {
			_ = stream.Close()
		}
	}()
	total := time.AfterFunc(time.Duration(p.config.Timeout), func() { cancel(errTooLong) })
	defer total.Stop()

	explain := func(err error) error {
		if ctx.Err() != nil { // the caller's own end
			return context.Cause(ctx)
		}
		return p.explain(inner, model, err)
	}
	stream, err = p.client.CreateChatCompletionStream(withBody(inner, body), api.ChatCompletionRequest{Model: model})
	if err != nil {
		return explain(err)
	}
	if err := checkContentType(stream.Header().Get("Content-Type")); err != nil {
		return explain(err)
	}
	idle := time.AfterFunc(time.Duration(p.config.IdleTimeout), func() { cancel(errStalled) })
	defer idle.Stop()

	a := answer{emit: emit, model: ID + "/" + model, maxCalls: p.config.MaxCalls}
	for {
		chunk, err := stream.Recv()
		if err == nil {
			idle.Reset(time.Duration(p.config.IdleTimeout))
			err = a.add(&chunk)
		} else if errors.Is(err, errEOF) {
			err = a.end()
			if err == nil {
				whole = true
				return nil
			}
		}
		if e := (*emitError)(nil); errors.As(err, &e) {
			return e.err
		}
		if err != nil {
			if e := a.spent(); e != nil {
				return e
			}
			return explain(err)
		}
	}
}

// outliving is ctx without its end, so that what is left of an answer can be read
// after it.
func outliving(ctx context.Context) (context.Context, context.CancelCauseFunc) {
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

// endTime is how long the end of an answer is waited for that is whole.
const endTime = time.Second

// release reads an answer that is whole to its end, which is about to come, so
// that its connection can be used again. One that does not end is closed.
func release(stream *api.ChatCompletionStream, cancel context.CancelCauseFunc) {
	late := time.AfterFunc(endTime, func() { cancel(nil) })
	_ = stream.Close()
	late.Stop()
	cancel(nil)
}
