package modelapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Report is the result of a Check, for the owner.
type Report struct {
	Model   string // that was asked
	Took    time.Duration
	Usage   *sdk.Usage // nil: the server reported none
	Context int64      // the model's window; 0: not known
	Failure *Failure   // nil: it answered
	Fix     string     // what to change, with addresses; empty: the failure says it
	Models  []Model    // that the server lists, if the failure may be the model's name
}

// checkTokens bounds the answer to a check.
const checkTokens = 16

// Check asks a model for one tiny completion; empty: the default model. A failure is
// examined further.
func (s *Server) Check(ctx context.Context, model string) Report {
	began := time.Now()
	r := Report{Model: model}
	err := s.Complete(ctx, &sdk.CompleteRequest{
		Model: model, MaxTokens: checkTokens,
		Messages: []*extensionv1.Message{{Role: RoleUser, Content: "Reply with the word OK."}},
	}, func(d *sdk.Delta) error {
		if d.GetModel() != "" {
			r.Model = strings.TrimPrefix(d.GetModel(), s.id+"/")
		}
		if d.GetUsage() != nil {
			r.Usage = d.GetUsage()
		}
		return nil
	})
	r.Took = time.Since(began)
	switch {
	case err == nil:
		r.Context, _ = s.Window(ctx, r.Model)
	case errors.As(err, &r.Failure):
		s.examine(ctx, &r)
	default:
		r.Failure = failf(Stalled, "%v did not answer in time", s.who)
	}
	return r
}

// examine looks for what a failure comes from.
func (s *Server) examine(ctx context.Context, r *Report) {
	switch r.Failure.Kind {
	case KeyRefused, Denied:
		if owner := ownerOf(s.key); owner != "" && !strings.EqualFold(owner, s.service()) {
			r.Fix = fmt.Sprintf("the key in %s looks like one of %s, and %s is %s", s.config.Key, owner, s.id, s.where)
		}
	case NoModel, BadAnswer, BadRequest:
		if address := s.versioned(ctx); address != "" {
			r.Fix = fmt.Sprintf("the address lacks /v1: set %s to %s", s.urlSetting(), address)
		} else if r.Failure.Kind == NoModel {
			r.Models, _ = s.List(ctx) // without it there are no suggestions
		}
	case Unavailable:
		if u, err := url.Parse(s.config.BaseURL); err == nil && local(u.Hostname()) {
			r.Fix = "start the server on " + u.Host
			if command := localServers[u.Port()]; command != "" {
				r.Fix += ", for example with: " + command
			}
		} else {
			r.Fix = fmt.Sprintf("check the network and the address: %s is %s", s.urlSetting(), s.where)
		}
	case Broken, Unconfigured, TooLong, RateLimited, Stalled:
	}
}

// versioned returns the base URL with /v1 if it lacks this and the server has its list
// of models there; empty: that is not it.
func (s *Server) versioned(ctx context.Context) string {
	address := s.config.BaseURL + "/v1"
	if strings.Contains(s.config.BaseURL, "/v") {
		return ""
	}
	c := s.config
	c.BaseURL = address
	there, err := NewServer(s.kind, s.id, c, s.key)
	if err != nil {
		return ""
	}
	defer there.Close()
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	resp, err := there.send(ctx, http.MethodGet, s.kind.Models, nil)
	if err == nil {
		_ = resp.Body.Close()
		return address
	}
	return ""
}

// service returns the name of the service that the server is; empty: none that is known.
func (s *Server) service() string {
	u, err := url.Parse(s.config.BaseURL)
	if err != nil {
		return ""
	}
	for host, service := range services {
		if u.Hostname() == host {
			return service
		}
	}
	return ""
}

// services are well-known services by their hosts.
var services = map[string]string{
	"api.openai.com": "OpenAI", "api.anthropic.com": "Anthropic", "openrouter.ai": "OpenRouter",
	"generativelanguage.googleapis.com": "Google", "api.groq.com": "Groq", "api.x.ai": "xAI",
}

// ownerOf returns the service that a key looks like one of; empty: not known.
func ownerOf(key string) string {
	for _, known := range []struct{ prefix, service string }{ // the longest first
		{"sk-ant-", "Anthropic"}, {"sk-or-", "OpenRouter"}, {"sk-proj-", "OpenAI"}, {"sk-svcacct-", "OpenAI"},
		{"AIza", "Google"}, {"gsk_", "Groq"}, {"xai-", "xAI"}, {"hf_", "Hugging Face"},
	} {
		if strings.HasPrefix(key, known.prefix) {
			return known.service
		}
	}
	return ""
}

// localServers start servers by their usual ports.
var localServers = map[string]string{
	"11434": "ollama serve", "1234": "lms server start", "8080": "llama-server --jinja -m MODEL.gguf",
	"8000": "vllm serve MODEL",
}

func local(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }
