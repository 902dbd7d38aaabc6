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

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// OfflineExtension answers without a model; it is asked only when no other
// provider is configured.
const OfflineExtension = "offline"

// Remote reaches the extensions that provide models.
type Remote interface {
	Complete(ctx context.Context, extension string, r *extensionv1.CompleteRequest, emit func(*extensionv1.Delta) error) error
}

// Router sends completions to providers. It is safe for concurrent use.
type Router struct {
	Directory *directory.Directory
	Remote    Remote
}

// Complete completes with the named model: "default", another name of the
// configuration, or <extension>/<model>. The first delta says which one answers.
// Its error is meant for people.
func (r *Router) Complete(ctx context.Context, name string, request *extensionv1.CompleteRequest, emit func(*extensionv1.Delta) error) error {
	now := r.Directory.Current()
	candidates := Candidates(now, name)
	if len(candidates) == 0 {
		return fmt.Errorf("%w: there is no model to ask: set OPENAI_API_KEY, or enable the extension %q", contract.ErrUnavailable, OfflineExtension)
	}
	var failures []string
	for _, c := range candidates {
		extension, model, _ := strings.Cut(c, "/")
		p := now.Provider(extension)
		if why := unusable(p, extension); why != "" {
			failures = append(failures, why)
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
			return err
		case errors.Is(err, contract.ErrStale):
			return err
		}
		failures = append(failures, err.Error())
	}
	return fmt.Errorf("%w: %s", contract.ErrUnavailable, strings.Join(failures, "; "))
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
