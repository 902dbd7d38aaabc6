// Package models sends a completion to the provider that the configuration
// names: the first of the list that can answer. A provider that fails before
// its first word is passed over, and so is one whose limit of tokens is reached;
// one that fails later ends the completion, for half an answer cannot be
// continued by somebody else.
//
// So many completions at a time as the configuration says (models.concurrency)
// are given to providers; the others wait in the order of asking, fairly between
// sessions, and nothing is asked for them meanwhile. One that ends while it waits
// leaves at once.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/spending"
)

// ErrNotRunning says that the provider's process is not there.
var ErrNotRunning = fmt.Errorf("%w: it is not running", contract.ErrUnavailable)

// Remote reaches the extensions that provide models. Complete wraps
// ErrNotRunning or contract.ErrGone if the process is not there, or ended.
type Remote interface {
	Complete(ctx context.Context, extension string, r *extensionv1.CompleteRequest, emit func(*extensionv1.Delta) error) error
}

// Router sends completions to providers. It is safe for concurrent use.
type Router struct {
	Directory *directory.Directory
	Remote    Remote
	Ledger    *spending.Ledger // nil: nothing is recorded or limited
	Places    Places
}

// Order is one completion to be made.
type Order struct {
	// Model is "default", another name of the configuration, or
	// <extension>/<model>.
	Model string
	// Cause is the event that it follows from; nil if there is none.
	Cause *busv1.Event
	// Request is passed on; its agent and session are who pays.
	Request *extensionv1.CompleteRequest
}

// absent is how long a completion waits for a provider that is being started.
const absent = 30 * time.Second

// pause keeps a completion from asking a provider that has just ended before
// that is known everywhere.
const pause = 100 * time.Millisecond

// Complete completes with the model that is ordered. The first delta says which
// one answers. When none can, but one of them is being started, it is waited for.
// What it took is recorded when it ends, however that is. Its error is meant for
// people.
func (r *Router) Complete(ctx context.Context, o Order, emit func(*extensionv1.Delta) error) error {
	if err := r.refused(o); err != nil {
		return err // it need not wait for that
	}
	leave, err := r.Places.Take(ctx, cmp.Or(o.Request.GetSession(), o.Request.GetAgent()), r.Directory.Current().Completions)
	if err != nil {
		return err
	}
	defer leave()
	waiting, cancel := context.WithTimeout(ctx, absent)
	defer cancel()
	for tried := false; ; tried = true {
		away, ended, err := r.attempt(ctx, o, emit)
		if err == nil || !away {
			return err
		}
		if tried || ended {
			select {
			case <-time.After(pause):
			case <-waiting.Done():
				return err
			}
		}
		r.Directory.Await(waiting, func(now *directory.Snapshot) bool {
			candidates := candidatesFor(now, o)
			some := func(is func(*directory.Provider) bool) bool {
				return slices.ContainsFunc(candidates, func(c string) bool {
					extension, _, _ := strings.Cut(c, "/")
					p := now.Provider(extension)
					return p != nil && is(p)
				})
			}
			return some(func(p *directory.Provider) bool { return p.State == directory.StateActive }) ||
				!some(func(p *directory.Provider) bool { return directory.Coming(p.State) })
		})
	}
}

// attempt asks the candidates in turn. Away says that none of them refused or
// failed: at least one that does not run now may run soon. Ended says that one
// was taken for running and is not.
func (r *Router) attempt(ctx context.Context, o Order, emit func(*extensionv1.Delta) error) (away, ended bool, err error) {
	now := r.Directory.Current()
	candidates := candidatesFor(now, o)
	if len(candidates) == 0 && o.Request.GetPurpose() != "" {
		return false, false, fmt.Errorf("%w: there is no language model to ask: set OPENAI_API_KEY", contract.ErrUnavailable)
	}
	if len(candidates) == 0 {
		return false, false, fmt.Errorf("%w: there is no model to ask: set OPENAI_API_KEY", contract.ErrUnavailable)
	}
	var failures []string
	failed := false
	for _, c := range candidates {
		extension, model, _ := strings.Cut(c, "/")
		p := now.Provider(extension)
		if why := unusable(p, extension); why != "" {
			failures = append(failures, why)
			away = away || p != nil && directory.Coming(p.State)
			continue
		}
		o.Request.Model = strings.TrimSuffix(model, "*")
		began, err := r.one(ctx, o, c, emit)
		refused := (*spending.Refused)(nil)
		switch {
		case err == nil || began || ctx.Err() != nil:
			return false, false, err
		case errors.Is(err, contract.ErrStale), errors.As(err, &refused) && refused.Whole:
			return false, false, err
		case refused != nil:
		case errors.Is(err, contract.ErrGone), errors.Is(err, ErrNotRunning):
			away, ended = true, true
		default:
			failed = true
		}
		failures = append(failures, err.Error())
	}
	return away && !failed, ended, fmt.Errorf("%w: %s", contract.ErrUnavailable, strings.Join(failures, "; "))
}

// refused says why a completion is not made, whichever candidate is asked; nil:
// one of them may answer.
func (r *Router) refused(o Order) error {
	var reasons []string
	for _, c := range candidatesFor(r.Directory.Current(), o) {
		err := r.Ledger.Check(o.Request.GetAgent(), c)
		refused := (*spending.Refused)(nil)
		if !errors.As(err, &refused) || refused.Whole {
			return err
		}
		reasons = append(reasons, err.Error())
	}
	if len(reasons) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", contract.ErrUnavailable, strings.Join(reasons, "; "))
}

// one has one candidate complete, and records what that took.
func (r *Router) one(ctx context.Context, o Order, candidate string, emit func(*extensionv1.Delta) error) (began bool, err error) {
	extension, _, _ := strings.Cut(candidate, "/")
	size := spending.Tokens(proto.Size(o.Request))
	bill, err := r.Ledger.Begin(o.Request.GetAgent(), candidate, size)
	if err != nil {
		return false, err
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
		bill.Drop()
		return m.began, err
	}
	used.Agent, used.Session, used.Purpose = o.Request.GetAgent(), o.Request.GetSession(), o.Request.GetPurpose()
	bill.Spent(o.Cause, used)
	return m.began, err
}

func unusable(p *directory.Provider, extension string) string {
	switch {
	case p == nil:
		return fmt.Sprintf("no extension %q provides models", extension)
	case p.State != directory.StateActive:
		return fmt.Sprintf("the extension %s is %s", extension, p.State)
	case p.Readiness.GetState() == extensionv1.Readiness_STATE_UNCONFIGURED:
		return fmt.Sprintf("%s is not set up: %s", extension, p.Readiness.GetDetail())
	}
	return ""
}

// candidatesFor are the models to try for an order: a fallback is asked for nothing
// but a step of a turn.
func candidatesFor(now *directory.Snapshot, o Order) []string {
	candidates := Candidates(now, o.Model)
	if o.Request.GetPurpose() == "" {
		return candidates
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return fallback(now, c) })
}

func fallback(now *directory.Snapshot, candidate string) bool {
	extension, _, _ := strings.Cut(candidate, "/")
	p := now.Provider(extension)
	return p != nil && p.Fallback
}

// Candidates are the models to try for a name, in order, as <extension>/<model>;
// <extension>/* leaves the model to the provider.
func Candidates(now *directory.Snapshot, name string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	if list := now.ModelNames[name]; len(list) > 0 {
		return list
	}
	if len(now.ModelOrder) > 0 {
		return now.ModelOrder
	}
	var found, fallbacks []string
	for i := range now.Models {
		switch p := &now.Models[i]; {
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
