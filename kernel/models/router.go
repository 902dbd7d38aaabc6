// Package models sends a completion to the first provider of the configured list
// that can answer, and records its cost. A provider that fails before its first
// delta is skipped, and so is one whose token limit is reached; one that fails
// later ends the completion, because no other provider can continue its answer.
//
// At most models.concurrency completions run at a time; the others wait in order
// of arrival, fairly between sessions. One whose context ends while it waits
// leaves the queue at once.
package models

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Emit gets the parts of a completion while it is written.
type Emit = func(*extensionv1.Delta) error

// ErrNotRunning means that the provider's process is not running.
var ErrNotRunning = words.Errorf("%w: it is not running", contract.ErrUnavailable)

// Remote reaches the extensions that provide models. Complete wraps
// ErrNotRunning or contract.ErrGone if the process is not running, or ended.
type Remote interface {
	Complete(ctx context.Context, extension string, r *extensionv1.CompleteRequest, emit Emit) error
}

// Router sends completions to providers. It is safe for concurrent use.
type Router struct {
	Directory *directory.Directory
	Remote    Remote
	Ledger    *Ledger // nil: nothing is recorded or limited
	Slots     Slots
}

// Order asks for one completion.
type Order struct {
	// Model is "default", another name of the configuration, or
	// <extension>/<model>.
	Model string
	// Cause is the event that led to the completion; nil: none.
	Cause *busv1.Event
	// Person is the account that is charged; empty: none.
	Person string
	// Request goes to the provider; its agent and session are charged.
	Request *extensionv1.CompleteRequest
}

const (
	startTimeout = 30 * time.Second       // how long a completion waits for a provider that is starting
	retryDelay   = 100 * time.Millisecond // until the directory shows that a provider has ended
)

// Complete completes with the ordered model. The first delta names the model that
// answers. If none can, but one of them is starting, Complete waits for it. The
// cost is recorded however the completion ends. The error is meant for people.
func (r *Router) Complete(ctx context.Context, o Order, emit Emit) error {
	retry, ended, err := r.attempt(ctx, o, emit)
	waiting, cancel := context.WithTimeout(ctx, startTimeout) // from now on: waiting for a slot does not count
	defer cancel()
	for tried := false; err != nil && retry; tried = true {
		if tried || ended {
			select {
			case <-time.After(retryDelay):
			case <-waiting.Done():
				return err
			}
		}
		r.Directory.Await(waiting, func(dir *directory.Snapshot) bool {
			active, coming := false, false
			for _, c := range candidatesFor(dir, o) {
				extension, _, _ := strings.Cut(c, "/")
				if p := dir.Provider(extension); p != nil {
					active = active || p.State == contract.StateActive
					coming = coming || directory.Transient(p.State)
				}
			}
			return active || !coming
		})
		retry, ended, err = r.attempt(ctx, o, emit)
	}
	return err
}

// attempt asks the candidates in turn. Retry says that a candidate may run soon,
// and that none refused or failed. Ended says that a candidate that the directory
// shows as running has ended.
func (r *Router) attempt(ctx context.Context, o Order, emit Emit) (retry, ended bool, err error) {
	dir := r.Directory.Current()
	candidates := candidatesFor(dir, o)
	if len(candidates) == 0 {
		var reasons []string
		for i := range dir.Models {
			if why := unusable(&dir.Models[i], dir.Models[i].Extension); why != "" {
				reasons = append(reasons, why)
			}
		}
		return false, false, words.Errorf("%w: no language model is set up: %v", contract.ErrUnavailable,
			cmp.Or(strings.Join(reasons, "; "), words.Sprintf("no extension provides models")))
	}
	var failures []string
	failed := false
	for _, c := range candidates {
		extension, model, _ := strings.Cut(c, "/")
		p := dir.Provider(extension)
		if why := unusable(p, extension); why != "" {
			failures = append(failures, why)
			retry = retry || p != nil && directory.Transient(p.State)
			continue
		}
		o.Request.Model = strings.TrimSuffix(model, "*")
		began, err := r.try(ctx, o, c, emit)
		refused := (*LimitError)(nil)
		switch {
		case err == nil || began || ctx.Err() != nil, errors.Is(err, contract.ErrStale),
			errors.As(err, &refused) && refused.EveryModel:
			return false, false, err
		case refused != nil:
		case errors.Is(err, contract.ErrGone), errors.Is(err, ErrNotRunning):
			retry, ended = true, true
		default:
			failed = true
		}
		failures = append(failures, err.Error())
	}
	return retry && !failed, ended, words.Errorf("%w: %s", contract.ErrUnavailable, strings.Join(failures, "; "))
}

// try completes with one candidate as soon as there is a slot, and records the cost.
func (r *Router) try(ctx context.Context, o Order, candidate string, emit Emit) (began bool, err error) {
	extension, _, _ := strings.Cut(candidate, "/")
	size := requestTokens(o.Request)
	charged := contract.ModelUsage{Agent: o.Request.GetAgent(), Person: o.Person, Model: candidate, InputTokens: size}
	bill, err := r.Ledger.Begin(charged)
	if err != nil {
		return false, err // no need to wait for a slot
	}
	defer bill.Drop() // unless it is spent
	// A slow transcription holds up no completion.
	if o.Request.GetRecording() == nil {
		key := cmp.Or(o.Request.GetSession(), o.Request.GetAgent())
		release, err := r.Slots.Acquire(ctx, key, r.Directory.Current().Completions)
		if err != nil {
			return false, err
		}
		defer release()
	}
	m := meter{model: candidate}
	err = r.Remote.Complete(ctx, extension, o.Request, func(d *extensionv1.Delta) error {
		if !m.began && d.GetModel() == "" {
			d.Model = candidate
		}
		m.read(d)
		return emit(d)
	})
	used, ok := m.cost(ctx, fallback(r.Directory.Current(), candidate), size, err)
	if !ok {
		return m.began, err
	}
	used.Agent, used.Person = charged.Agent, charged.Person
	used.Session, used.Purpose = o.Request.GetSession(), o.Request.GetPurpose()
	bill.Spent(o.Cause, used)
	return m.began, err
}

// imageTokens is the estimate for an image: about what providers count for one of
// contract.MaxImageSide.
const imageTokens = 1600

// requestTokens estimates the tokens of a request.
func requestTokens(r *extensionv1.CompleteRequest) int64 {
	size := proto.Size(r)
	for _, m := range r.GetMessages() {
		for _, i := range m.GetImages() {
			size += imageTokens*bytesPerToken - len(i.GetData())
		}
	}
	return estimateTokens(size)
}

// meter measures the cost of one completion.
type meter struct {
	began bool
	model string             // that answers
	usage *extensionv1.Usage // nil: not reported
	bytes int                // of the answer
}

func (m *meter) read(d *extensionv1.Delta) {
	m.began = m.began || d.GetContext() == 0 || d.GetText() != "" || d.GetCall() != nil || d.GetFinish() != ""
	if d.GetModel() != "" {
		m.model = d.GetModel()
	}
	if u := d.GetUsage(); u.GetInputTokens() > 0 || u.GetOutputTokens() > 0 || u.GetAudioMs() > 0 {
		m.usage = u
	}
	m.bytes += len(d.GetText()) + len(d.GetCall().GetName()) + len(d.GetCall().GetArguments())
}

// cost returns the cost of a completion that ended with err; false: nothing. A
// provider that began to answer, or was canceled and may have begun, may charge
// for it: tokens that it did not report are estimated.
func (m *meter) cost(ctx context.Context, fallback bool, request int64, err error) (u contract.ModelUsage, ok bool) {
	u.Model = m.model
	switch {
	case m.usage != nil:
		u.InputTokens, u.OutputTokens = plausible(m.usage.GetInputTokens()), plausible(m.usage.GetOutputTokens())
		u.CachedTokens, u.AudioMS = plausible(m.usage.GetCachedTokens()), plausible(m.usage.GetAudioMs())
		if c := m.usage.GetCurrency(); len(c) == 3 {
			u.CostMicros, u.Currency = plausible(m.usage.GetCostMicros()), c
		}
		return u, true
	case fallback, errors.Is(err, ErrNotRunning), !m.began && ctx.Err() == nil:
		return u, false
	}
	u.InputTokens, u.OutputTokens, u.Estimated = request, estimateTokens(m.bytes), true
	return u, true
}

// plausible bounds what a provider reports: no completion gives tokens back, or takes
// so many that their sum overflows.
func plausible(tokens int64) int64 { return min(max(0, tokens), 1<<40) }

func unusable(p *directory.Provider, extension string) string {
	switch {
	case p == nil:
		return words.Sprintf("no extension %q provides models", extension)
	case p.State != contract.StateActive:
		return words.Sprintf("the extension %s is %v", extension, p.State)
	case p.Readiness.GetState() == extensionv1.Readiness_STATE_UNCONFIGURED:
		return words.Sprintf("%s is not set up: %v", extension, p.Readiness.GetDetail())
	}
	return ""
}

// candidatesFor returns the models to try for an order. A fallback answers only
// steps of a turn.
func candidatesFor(dir *directory.Snapshot, o Order) []string {
	candidates := Candidates(dir, o.Model)
	if o.Request.GetPurpose() == "" {
		return candidates
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return fallback(dir, c) })
}

func fallback(dir *directory.Snapshot, candidate string) bool {
	extension, _, _ := strings.Cut(candidate, "/")
	p := dir.Provider(extension)
	return p != nil && p.Fallback
}

// Candidates returns the models to try for a name, in order, as
// <extension>/<model>; <extension>/* leaves the model to the provider.
func Candidates(dir *directory.Snapshot, name string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	if list := dir.ModelNames[name]; len(list) > 0 {
		return list
	}
	if len(dir.ModelOrder) > 0 {
		return dir.ModelOrder
	}
	var found, fallbacks []string
	for i := range dir.Models {
		switch p := &dir.Models[i]; {
		case p.Fallback:
			fallbacks = append(fallbacks, p.Models...)
		case p.Readiness.GetState() != extensionv1.Readiness_STATE_UNCONFIGURED && len(p.Models) > 0:
			found = append(found, p.Models[0])
		}
	}
	if len(found) == 0 {
		found = fallbacks
	}
	return slices.Clip(found)
}
