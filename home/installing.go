package home

import (
	"errors"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/consent"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/manifests"
)

// Installer installs extensions into a home and knows what the owner allowed them. The
// caller must call Close.
type Installer struct {
	*install.Installer
	*Consents
}

// OpenInstaller opens an installer for a home, with or without a kernel on it. The
// options need no home, version, environment or check.
func OpenInstaller(o Options, io install.Options) (*Installer, error) {
	c, err := OpenConsents(o)
	if err != nil {
		return nil, err
	}
	io.Home, io.KernelVersion, io.Environ, io.Check = o.Home, o.Version, o.Environ, c.installable
	i, err := install.Open(io)
	if err != nil {
		return nil, err
	}
	// Before anything new is in the home: what an earlier version ran counts as allowed.
	if err := errors.Join(prepareConsent(o.Home), c.files.consent.Create()); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return &Installer{i, c}, nil
}

// Consents are the owner's decisions about extensions, also about those that are not
// installed yet.
type Consents struct {
	files    *files
	settings *config.Config
	builtins []manifests.Entry
}

// OpenConsents reads the decisions of a home. It changes nothing.
func OpenConsents(o Options) (*Consents, error) {
	live := config.Open(o.Home, o.Env) // as a kernel that runs, it goes on without a bad edit
	f, err := openFiles(o, live)
	if err != nil {
		return nil, err
	}
	settings := live.Config()
	return &Consents{files: f, settings: settings, builtins: withProviders(f.builtins, settings)}, nil
}

// installable returns an error if an extension could not start in this home, whatever else
// is installed.
func (c *Consents) installable(m *manifests.Manifest) error {
	if slices.ContainsFunc(c.builtins, func(b manifests.Entry) bool { return b.ID == m.ID }) {
		return words.Errorf("%s is the id of a built-in extension: the extension needs another one", m.ID)
	}
	set := manifests.Resolve([]manifests.Entry{{ID: m.ID, File: m.File, Manifest: m}}, manifests.Options{
		KernelVersion: c.files.options.Version, Refuse: refuseFor(c.files.options, c.settings),
	})
	for _, d := range set.Disabled {
		if d.Cause != manifests.Missing { // it may be installed later
			return errors.New(d.Reason)
		}
	}
	return nil
}

// Consent is what an extension asks for beyond itself, and what the owner decided.
type Consent struct {
	Asks manifests.Request
	More manifests.Request // of Asks, what is not allowed
	// Uses are lines about what it uses without asking.
	Uses     []string
	Refused  bool
	ByConfig bool // config.yaml allows it
	Tools    bool // the default agent may use its tools
	By       string
	At       time.Time

	allowed manifests.Request
	runs    bool
}

// Lines are those of More. Of a changed tool they show what it was.
func (c Consent) Lines() []string { return c.allowed.LinesOf(c.More, "") }

// Allowed reports whether the extension may run as it is, perhaps without some of its tools.
func (c Consent) Allowed() bool { return len(c.More) == 0 || c.runs }

// Consent returns what an extension asks for, installed or not.
func (c *Consents) Consent(m *manifests.Manifest) (Consent, error) {
	decisions, err := c.files.consent.Current()
	if err != nil {
		return Consent{}, err
	}
	d, a := decisions[m.ID], newAsked(m, decisions, foreignSecrets(c.builtins, c.settings))
	if a == nil {
		return Consent{Uses: m.Shown("")}, nil
	}
	x := Consent{
		Asks: a.all(), More: a.more, Uses: m.Shown("", a.asks...), Tools: d.Tools, By: d.By, At: d.At,
		Refused: a.state == consent.Refused, allowed: d.Allowed, runs: a.onlyTools(),
	}
	if x.ByConfig = len(x.More) > 0 && c.settings.Allows(m.ID); x.ByConfig {
		x.More, x.Refused = nil, false
	}
	return x, nil
}

// Allow allows an extension that is going to be installed what it asks for. What runs
// with its id keeps its permissions, until Settle.
func (c *Consents) Allow(m *manifests.Manifest, tools bool, by string) error {
	asks := m.Asks(foreignSecrets(c.builtins, c.settings)...)
	return c.files.consent.Update(func(all consent.Decisions) (bool, error) {
		x := all[m.ID]
		x = x.Allow(asks.With(x.Wants))
		x.Tools = x.Tools || tools && m.Provides.Tools
		x.By, x.At = by, now()
		all[m.ID] = x
		return true, nil
	})
}

// Settle ends the permissions that only the version before this one asked for. The kernel
// has to know this version by then.
func (c *Consents) Settle(m *manifests.Manifest) error {
	asks := m.Asks(foreignSecrets(c.builtins, c.settings)...)
	return c.files.consent.Update(func(all consent.Decisions) (bool, error) {
		x, known := all[m.ID]
		if !known || !x.Allowed.Covers(asks) {
			return false, nil
		}
		all[m.ID] = x.Settle(asks)
		return true, nil
	})
}

// Forget ends the decisions about an extension that was removed: another one with its id is
// asked about again.
func (c *Consents) Forget(id string) error {
	return c.files.consent.Update(func(all consent.Decisions) (bool, error) {
		_, known := all[id]
		delete(all, id)
		return known, nil
	})
}
