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

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/metering"
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
	size := metering.Request(o.Request)
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
	m := metering.Meter{Model: candidate}
	err = r.Remote.Complete(ctx, extension, o.Request, func(d *extensionv1.Delta) error {
		if !m.Began && d.GetModel() == "" {
			d.Model = candidate
		}
		m.Read(d)
		return emit(d)
	})
	// A provider that was canceled may have begun, and charge for it.
	mayCharge := (m.Began || ctx.Err() != nil) && !errors.Is(err, ErrNotRunning)
	used, ok := m.Used(size, mayCharge && !fallback(r.Directory.Current(), candidate))
	if !ok {
		return m.Began, err
	}
	used.Agent, used.Person = charged.Agent, charged.Person
	used.Session, used.Purpose = o.Request.GetSession(), o.Request.GetPurpose()
	bill.Spent(o.Cause, used)
	return m.Began, err
}

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
