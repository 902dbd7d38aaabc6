package home

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/manifests"
)

const (
	// fetchTime bounds a fetch for a client that waits for the answer. On the command line
	// one may take longer.
	fetchTime = 2 * time.Minute
	// followTime bounds the wait for the kernel to follow an edit, and for a process to end.
	followTime = 15 * time.Second
)

// Enable implements adminv1.InstallationServer.
func (d described) Enable(ctx context.Context, q *adminv1.EnableRequest) (*adminv1.EnableResponse, error) {
	id, on := q.GetId(), q.GetEnabled()
	changed, err := Enable(d.options, id, on)
	if err != nil {
		return nil, asInvalid("change config.yaml", err)
	}
	if changed {
		d.follows(ctx, func(p *plan) bool { return p.config.Extensions[id].Enabled == on })
	}
	return &adminv1.EnableResponse{Changed: changed}, nil
}

// Install implements adminv1.InstallationServer.
func (d described) Install(ctx context.Context, q *adminv1.InstallRequest) (*adminv1.InstallResponse, error) {
	i, err := d.installer()
	if err != nil {
		return nil, err
	}
	defer i.Close() //nolint:errcheck // it only unlocks
	from, known, err := d.source(ctx, q)
	if err != nil {
		return nil, asInvalid("find the source", err)
	}
	o, err := i.Offer(ctx, from, known)
	if err != nil {
		return nil, asInvalid("look at the extension", err)
	}
	defer o.Discard() //nolint:errcheck // the next installation removes it
	switch q.GetHash() {
	case "":
		return o.response(), nil
	case o.Record.Hash:
	default:
		return nil, fmt.Errorf("%w: the source has changed since you looked at it: look at it again", contract.ErrInvalid)
	}
	if _, err := o.Install(ctx, Answer{q.GetAllow(), q.GetTools(), q.GetReplace(), q.GetBy()}); err != nil {
		return nil, asInvalid("install the extension", err)
	}
	r := o.response()
	r.Done = true
	inForce := func(e manifests.Entry) bool {
		return e.ID == o.Manifest.ID && e.Manifest != nil && e.Manifest.Source() == o.Manifest.Source()
	}
	if d.follows(ctx, func(p *plan) bool { return slices.ContainsFunc(p.entries, inForce) }) {
		err = i.Settle(o.Manifest)
	}
	return r, err
}

// Remove implements adminv1.InstallationServer.
func (d described) Remove(ctx context.Context, q *adminv1.RemoveRequest) (*adminv1.RemoveResponse, error) {
	id := q.GetId()
	switch x, err := Find(d.options, id); {
	case err != nil:
		return nil, err
	case x.Builtin:
		return nil, fmt.Errorf("%w: %s is built in: it can be disabled, and not removed", contract.ErrInvalid, id)
	}
	i, err := d.installer()
	if err != nil {
		return nil, err
	}
	defer i.Close() //nolint:errcheck // it only unlocks
	err = i.Uninstall(ctx, id, q.GetData(), func() {
		known := func(e manifests.Entry) bool { return e.ID == id }
		d.follows(ctx, func(p *plan) bool { return !slices.ContainsFunc(p.entries, known) })
		wait, cancel := context.WithTimeout(ctx, followTime)
		defer cancel()
		d.running.ended(wait, id)
	})
	if err != nil {
		return nil, asInvalid("remove "+id, err)
	}
	r := &adminv1.RemoveResponse{}
	if !q.GetData() {
		r.Data = i.DataDir(id)
	}
	return r, nil
}

// installer opens the installer of a running kernel.
func (d described) installer() (*Installer, error) {
	i, err := OpenInstaller(d.options, install.Options{Timeout: fetchTime})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", contract.ErrUnavailable, err)
	}
	return i, nil
}

// source returns what a request names, and for an update the record of the extension.
func (d described) source(ctx context.Context, q *adminv1.InstallRequest) (install.Source, *install.Record, error) {
	if id := q.GetId(); id != "" {
		r, err := Installed(ctx, d.options, id)
		if err != nil {
			return install.Source{}, nil, err
		}
		return r.Source, r, nil
	}
	for _, text := range []string{q.GetSource(), q.GetIndex()} {
		if text == "" || filepath.IsAbs(text) || text == q.GetSource() && q.GetIndex() != "" {
			continue
		}
		// The kernel's working directory is no one's, so a path in it means nothing.
		if u, err := url.Parse(text); err == nil && u.Scheme != "" && u.Host != "" {
			continue
		}
		if s, err := install.ParseSource(text, ""); err != nil || s.Kind != install.Git || filepath.IsAbs(s.Location) {
			return install.Source{}, nil, fmt.Errorf("%s: give an address, or a path that begins with /", text)
		}
	}
	s, err := install.ParseSource(q.GetSource(), q.GetIndex())
	return s, nil, err
}

// Installed returns the record of an extension that an Installer has installed.
func Installed(ctx context.Context, o Options, id string) (*install.Record, error) {
	all, err := install.Records(o.Home)
	if i := slices.IndexFunc(all, func(r install.Record) bool { return r.ID == id }); i >= 0 {
		return &all[i], nil
	}
	if _, readErr := install.Read(ctx, o.Home, id); errors.Is(readErr, install.ErrNotInstalled) {
		return nil, readErr
	}
	return nil, errors.Join(fmt.Errorf("%s: %w, so its source isn't known", id, install.ErrForeign), err)
}

// response describes an offer for its owner.
func (o *Offer) response() *adminv1.InstallResponse {
	m, asked := o.Manifest, o.Asked
	r := &adminv1.InstallResponse{
		Id: m.ID, Name: valid(m.Name), Version: m.Version, Description: valid(m.Description),
		Source: valid(o.Record.Source.String()), Publisher: valid(o.Record.Publisher),
		Hash: o.Record.Hash, Uses: asked.Uses, Current: o.Current(), Older: o.Older(),
	}
	if len(asked.Asks) > 0 || m.Provides.Tools {
		state := "asks"
		switch {
		case asked.Allowed():
			state = "allowed"
		case asked.Refused:
			state = "refused"
		}
		r.Consent = &adminv1.Consent{
			State: state, Asks: asked.Asks.Lines(""), More: asked.More.Lines(""), Uses: asked.Uses, Tools: asked.Tools,
			OffersTools: m.Provides.Tools,
		}
	}
	if err := o.Foreign(); err != nil {
		r.Foreign = valid(err.Error())
	}
	if o.replacesManifest() {
		r.Installed, r.NoLonger = o.Old.Manifest.Version, asked.Asks.Beyond(o.Had.Asks).Lines("")
	}
	return r
}

// follows waits until the kernel has a plan, and reports whether it has it in time.
func (d described) follows(ctx context.Context, has func(*plan) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !has(d.plan.Load()) {
		select {
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// asInvalid is an error that the client can do something about, with what was attempted.
func asInvalid(attempt string, err error) error {
	for _, class := range []error{contract.ErrInvalid, contract.ErrNotFound, contract.ErrUnavailable} {
		if errors.Is(err, class) {
			return err
		}
	}
	return fmt.Errorf("%w: %s: %w", contract.ErrInvalid, attempt, err)
}
