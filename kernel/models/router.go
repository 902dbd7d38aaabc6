// Package models sends a completion to the provider that the configuration
// names: the first of the list that can answer. A provider that fails before
// its first word is passed over; one that fails later ends the completion, for
// half an answer cannot be continued by somebody else.
package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// OfflineExtension answers without a model; it is asked only when no other
// provider is configured, and only for a step of a turn.
const OfflineExtension = "offline"

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
}

// absent is how long a completion waits for a provider that is being started.
const absent = 30 * time.Second

// pause keeps a completion from asking a provider that has just ended before
// that is known everywhere.
const pause = 100 * time.Millisecond

// Complete completes with the named model: "default", another name of the
// configuration, or <extension>/<model>. The first delta says which one answers.
// When none can, but one of them is being started, it is waited for. Its error
// is meant for people.
func (r *Router) Complete(ctx context.Context, name string, request *extensionv1.CompleteRequest, emit func(*extensionv1.Delta) error) error {
	waiting, cancel := context.WithTimeout(ctx, absent)
	defer cancel()
	for {
		away, err := r.attempt(ctx, name, request, emit)
		if err == nil || !away {
			return err
		}
		select {
		case <-time.After(pause):
		case <-waiting.Done():
			return err
		}
		r.Directory.Await(waiting, func(now *directory.Snapshot) bool {
			candidates := candidatesFor(now, name, request)
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
// failed: at least one that does not run now may run soon.
func (r *Router) attempt(ctx context.Context, name string, request *extensionv1.CompleteRequest, emit func(*extensionv1.Delta) error) (away bool, err error) {
	now := r.Directory.Current()
	candidates := candidatesFor(now, name, request)
	if len(candidates) == 0 && request.GetPurpose() != "" {
		return false, fmt.Errorf("%w: there is no language model to ask: set OPENAI_API_KEY", contract.ErrUnavailable)
	}
	if len(candidates) == 0 {
		return false, fmt.Errorf("%w: there is no model to ask: set OPENAI_API_KEY, or enable the extension %q", contract.ErrUnavailable, OfflineExtension)
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
		request.Model = strings.TrimSuffix(model, "*")
		began := false
		err := r.Remote.Complete(ctx, extension, request, func(d *extensionv1.Delta) error {
			if !began {
				began = true
				if d.GetModel() == "" {
					d.Model = c
				}
			}
			return emit(d)
		})
		switch {
		case err == nil || began || ctx.Err() != nil:
			return false, err
		case errors.Is(err, contract.ErrStale):
			return false, err
		case errors.Is(err, contract.ErrGone), errors.Is(err, ErrNotRunning):
			away = true
		default:
			failed = true
		}
		failures = append(failures, err.Error())
	}
	return away && !failed, fmt.Errorf("%w: %s", contract.ErrUnavailable, strings.Join(failures, "; "))
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

// candidatesFor are the models to try for a request: a grammar for what people
// say is asked for nothing but a step of a turn.
func candidatesFor(now *directory.Snapshot, name string, request *extensionv1.CompleteRequest) []string {
	candidates := Candidates(now, name)
	if request.GetPurpose() == "" {
		return candidates
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c string) bool { return strings.HasPrefix(c, OfflineExtension+"/") })
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
	var found []string
	for i := range now.Models {
		p := &now.Models[i]
		if p.Extension != OfflineExtension && p.Readiness.GetState() != extensionv1.Readiness_STATE_UNCONFIGURED && len(p.Models) > 0 {
			found = append(found, p.Models[0])
		}
	}
	if len(found) == 0 && now.Provider(OfflineExtension) != nil {
		found = append(found, now.Provider(OfflineExtension).Models...)
	}
	return slices.Clip(found)
}
