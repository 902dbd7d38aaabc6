package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/home/pin"
)

// ErrAsksMore means that a version asks for more than is allowed, and that an earlier one
// runs with permission.
var ErrAsksMore = errors.New("asks for more than is allowed, so the installed version stays")

// Offer is an extension that was fetched and checked, beside what it would replace.
type Offer struct {
	*install.Staged
	Old   *install.Installed // nil: there is none with its id
	Had   Consent            // of the manifest of Old, if that is valid
	Asked Consent

	installer *Installer
}

// Offer fetches an extension and changes nothing. Known is the record of the one that is to
// be updated; nil: any extension. The caller must call Discard.
func (i *Installer) Offer(ctx context.Context, from install.Source, known *install.Record) (_ *Offer, err error) {
	o := &Offer{installer: i}
	if o.Staged, err = i.Fetch(ctx, from); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = o.Discard()
		}
	}()
	if known != nil && o.Manifest.ID != known.ID {
		return nil, fmt.Errorf("the source has the extension %s now: install that, and remove %s", o.Manifest.ID, known.ID)
	}
	if o.Old, err = o.Replaces(ctx); err != nil {
		return nil, err
	}
	if o.replacesManifest() {
		if o.Had, err = i.Consent(o.Old.Manifest); err != nil {
			return nil, err
		}
	}
	o.Asked, err = i.Consent(o.Manifest)
	return o, err
}

func (o *Offer) replacesManifest() bool { return o.Old != nil && o.Old.Manifest != nil }

// Current reports whether exactly this is installed.
func (o *Offer) Current() bool {
	return o.Old != nil && !o.Old.Changed && o.Old.Record != nil && o.Old.Record.Hash == o.Record.Hash
}

// Older reports whether a newer version is installed.
func (o *Offer) Older() bool {
	if !o.replacesManifest() {
		return false
	}
	offered, err := semver.NewVersion(o.Manifest.Version)
	there, err2 := semver.NewVersion(o.Old.Manifest.Version)
	return err == nil && err2 == nil && offered.LessThan(there)
}

// Foreign returns install.ErrForeign or install.ErrChanged if only an answer with Replace
// installs it.
func (o *Offer) Foreign() error { return o.Old.Replaceable(o.Manifest.ID, false) }

// Answer is what the owner says to an offer.
type Answer struct {
	Allow   bool   // what it asks for
	Tools   bool   // also give its tools to the default agent
	Replace bool   // also files that were put or changed there by other means
	By      string // who decides, as shown to people
}

// Install puts the extension into the home. What is not allowed is installed only if it
// replaces nothing that runs; else the error is ErrAsksMore. An error means that nothing has
// changed but the permissions.
func (o *Offer) Install(ctx context.Context, a Answer) (Consent, error) {
	m, i := o.Manifest, o.installer
	if !a.Replace {
		if err := o.Foreign(); err != nil {
			return o.Asked, err
		}
	}
	switch {
	case a.Allow && (!o.Asked.Allowed() || a.Tools && m.Provides.Tools && !o.Asked.Tools):
		if err := i.Allow(m, a.Tools, a.By); err != nil {
			return o.Asked, err
		}
	case !a.Allow && !o.Asked.Allowed() && o.replacesManifest() && o.Had.Allowed():
		return o.Asked, fmt.Errorf("%s %s %w", m.ID, m.Version, ErrAsksMore)
	}
	if err := o.Commit(ctx, a.Replace); err != nil {
		return o.Asked, err
	}
	if options := i.files.options; options.Pinned && m.Run.Command != "" {
		if err := pin.Allow(ctx, options.Home, m); err != nil {
			return o.Asked, err
		}
	}
	return i.Consent(m)
}

// Uninstall removes an extension, and with data what it has stored. Stopped waits until its
// process has ended: its files are out of reach by then, and are removed afterwards.
func (i *Installer) Uninstall(ctx context.Context, id string, data bool, stopped func()) error {
	discard, err := i.Remove(ctx, id)
	if err != nil {
		return err
	}
	stopped()
	if err := errors.Join(discard(), i.Forget(id)); err != nil || !data {
		return err
	}
	return i.RemoveData(id)
}
