// Package hooks is the webhooks of the web channel, in both directions.
//
// # In: POST /hooks/<name>
//
//   - A request is let in by its signature alone: HMAC-SHA256 of the body with the hook's
//     secret. Whatever is wrong with it, the answer is the same.
//   - When the answer is 200, the message, the event or the task is on disk. With dedupe, a
//     repetition with the same value of that header changes nothing, over crashes too, for as
//     long as events are kept.
//   - What comes in is data of a guest: it is never a command, an answer to a question or an
//     approval, and its agent may do what it may do for a guest. The person hook:<name> is
//     admitted at the first message or task; when the owner revokes or blocks it, the hook is
//     refused, and its new code waits for the owner like that of a stranger.
//
// # Out
//
// The events that a webhook's topics match are sent to its address, at least once and in
// order for each key of an event. A receiver that fails is tried again with back-off for up to
// three days, while later events of that key wait; then the event is a dead letter, which
// `switchboard events dead` lists and `events resubmit` sends again. A new webhook begins with
// the next event. The extension's manifest cannot name topics that the configuration chooses,
// so the events are read through the admin service, and each one that matches becomes an event
// of the extension in the commit that moves the cursor: the bus does the rest.
package hooks

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"text/template"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// Prefix is the path of all hooks, which need no visitor.
const Prefix = "/hooks/"

// TopicHook begins the topics of the events of hooks, before the hook's name.
const TopicHook = "web_channel.hook."

// Hook is one entry of the setting hooks.
type Hook struct {
	Secret    string `json:"secret"`    // name of the secret
	Signature string `json:"signature"` // header with the signature
	Dedupe    string `json:"dedupe"`    // header that is the same when a request is repeated; empty: none
	To        string `json:"to"`        // message, event or task
	Template  string `json:"template"`  // of the text
	Agent     string `json:"agent"`     // empty: the default one
}

// Config is the settings of the part, by the names of hooks.
type Config struct {
	Hooks    map[string]Hook    `json:"hooks"`
	Webhooks map[string]Webhook `json:"webhooks"`
}

// Store is the part of *sdk.Kernel that the part uses.
type Store interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Receive(ctx context.Context, m sdk.UserMessage, dedupe string, effects ...sdk.Effect) error
	Secret(name string) string
}

// Options are what the part needs. All must be set.
type Options struct {
	Config  Config
	Context context.Context //nolint:containedctx // ends with the extension
	Channel string          // id
	Chat    chat.Conversations
	Store   Store
	Read    adminv1.ReadClient
	Manage  adminv1.ManageClient
	Now     func() time.Time
	Log     hclog.Logger
}

// Hooks is the part.
type Hooks struct {
	o   Options
	in  map[string]*inbound
	out map[string]*outbound

	admitting sync.Mutex // held while a guest is looked up
}

// inbound is one hook.
type inbound struct {
	Hook
	name     string
	secret   []byte
	template *template.Template // nil: none
	pace     *rate.Limiter      // of requests with a signature
}

const (
	perSecond = 10
	atOnce    = 100
	maxBody   = 1 << 20
)

// New prepares the hooks. Problems are what is wrong with the settings, each with its hook,
// which is refused until it is corrected.
func New(o Options) (h *Hooks, problems []string) {
	h = &Hooks{o: o, in: map[string]*inbound{}, out: map[string]*outbound{}}
	for name, hook := range o.Config.Hooks {
		one := &inbound{Hook: hook, name: name, pace: rate.NewLimiter(perSecond, atOnce)}
		if one.secret = []byte(o.Store.Secret(hook.Secret)); len(one.secret) == 0 {
			problems = append(problems,
				fmt.Sprintf("hooks.%s: the secret %s is not set: add it to secrets.env", name, hook.Secret))
		}
		var err error
		if one.template, err = parseTemplate(hook.Template); err != nil {
			problems = append(problems, fmt.Sprintf("hooks.%s.template: %v", name, err))
			one.secret = nil
		}
		h.in[name] = one
	}
	for name, webhook := range o.Config.Webhooks {
		one, err := newOutbound(name, webhook, o.Store.Secret(webhook.Secret))
		if err != nil {
			problems = append(problems, fmt.Sprintf("webhooks.%s: %v", name, err))
			continue
		}
		h.out[name] = one
	}
	slices.Sort(problems)
	return h, problems
}

// Register adds the route of hooks, and begins to send what webhooks are for.
func (h *Hooks) Register(mux *http.ServeMux) {
	mux.HandleFunc("POST "+Prefix+"{name}", h.serve)
	if len(h.out) > 0 {
		go h.follow(h.o.Context)
	}
}

// serve takes one request.
func (h *Hooks) serve(w http.ResponseWriter, r *http.Request) {
	hook := h.in[r.PathValue("name")]
	if hook == nil {
		http.Error(w, "there is no such hook", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body has more than 1 MiB, or came too slowly", http.StatusRequestEntityTooLarge)
		return
	}
	switch {
	case !hook.signed(r.Header.Get(hook.Signature), body, h.o.Now()):
		http.Error(w, "the signature is missing or wrong", http.StatusUnauthorized)
		return
	case !hook.pace.AllowN(h.o.Now(), 1):
		w.Header().Set("Retry-After", "10")
		http.Error(w, "too many requests: try again in ten seconds", http.StatusTooManyRequests)
		return
	}
	if status, text := h.take(r, hook, body); status != http.StatusOK {
		http.Error(w, text, status)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}

// visitor is the guest of a hook.
func (h *Hooks) visitor(hook *inbound) door.Visitor {
	return door.Visitor{
		User: "hook:" + hook.name, Person: "hook:" + hook.name, Name: "hook " + hook.name, Role: "guest", Token: "hook",
		Scopes: []string{door.ScopeMessages},
	}
}

// forwarded names the author of what a hook brings.
func (i *inbound) forwarded() string { return "hook " + i.name }

var errRevoked = fmt.Errorf("%w: the person of this hook was revoked or is blocked", contract.ErrDenied)
