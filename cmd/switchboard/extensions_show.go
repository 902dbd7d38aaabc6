package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/manifests"
)

// shownExtension is an extension as `extensions show --json` prints it.
type shownExtension struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Builtin     bool            `json:"builtin"`
	State       string          `json:"state"` // "not running": without a kernel
	Readiness   string          `json:"readiness,omitempty"`
	Detail      string          `json:"detail,omitempty"`
	Asks        []string        `json:"asks"`
	More        []string        `json:"more"` // of them, what is not allowed
	Uses        []string        `json:"uses"`
	Decision    string          `json:"decision"` // "", if it asks for nothing: allowed, refused, none
	DecidedBy   string          `json:"decided_by,omitempty"`
	DecidedAt   time.Time       `json:"decided_at,omitzero"`
	Tools       bool            `json:"tools"` // the default agent may use its tools
	Installed   *install.Record `json:"installed,omitempty"`
	Changed     bool            `json:"changed"` // since it was installed
	Problem     string          `json:"problem,omitempty"`
}

func newExtensionsShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show ID", Short: "Show what an extension may do, and where it comes from", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(extensionIDs),
		Long: "Shows an extension: its state, what it asks for in plain words, its source, publisher and hash, and\n" +
			"whether its files have changed since it was installed. It works without a kernel, too.",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		x := &installation{c: c, p: printerOf(c)}
		var err error
		if x.home, err = findHome(); err != nil {
			return x.said(err, "show "+args[0])
		}
		if x.kernel, _ = dial(c.Context(), x.home); x.kernel != nil {
			defer x.kernel.Close()
		}
		found, err := x.look(args[0])
		if err != nil {
			return x.said(err, "show "+args[0])
		}
		if *asJSON {
			return printJSON(c, found)
		}
		x.show(found)
		return nil
	}
	return c
}

// look collects what is known of an extension.
func (x *installation) look(id string) (*shownExtension, error) {
	o, err := kernelOptions(x.home)
	if err != nil {
		return nil, err
	}
	if _, err := home.Find(o, id); err != nil {
		return nil, err
	}
	seen, err := home.Inspect(o)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(seen.Entries, func(e home.InspectedEntry) bool { return e.ID == id })
	e := seen.Entries[i]
	s := &shownExtension{
		ID: id, Builtin: e.Builtin, State: "not running", Asks: []string{}, More: []string{}, Uses: []string{},
	}
	if m := e.Manifest; m != nil {
		s.Name, s.Version, s.Description = m.Name, m.Version, m.Description
		s.Uses = append(s.Uses, m.Shown("")...)
	}
	if e.Err != nil {
		s.Problem = e.Err.Error()
	}
	if e.Disabled != nil {
		s.Detail = e.Disabled.Reason
	}
	if row := x.row(x.c.Context(), id); row != nil {
		s.State, s.Readiness, s.Detail = row.State, row.Readiness, detailOf(row)
	}
	if !e.Builtin {
		installed, err := install.Read(x.c.Context(), x.home, id)
		if err != nil && !errors.Is(err, install.ErrNotInstalled) && s.Problem == "" {
			s.Problem = err.Error()
		}
		s.Installed, s.Changed = installed.Record, installed.Changed
		if m := installed.Manifest; m != nil { // while the owner decides, an older one is in force
			s.Name, s.Version, s.Description = m.Name, m.Version, m.Description
			return s, x.consent(s, m)
		}
	}
	return s, nil
}

// consent adds what an extension asks for, and what was decided.
func (x *installation) consent(s *shownExtension, m *manifests.Manifest) error {
	o, err := kernelOptions(x.home)
	if err != nil {
		return err
	}
	decisions, err := home.OpenConsents(o)
	if err != nil {
		return err
	}
	d, err := decisions.Consent(m)
	if err != nil {
		return err
	}
	s.Asks, s.More, s.Uses = append(s.Asks, d.Asks.Lines("")...), append(s.More, d.Lines()...), d.Uses
	s.Tools = d.Tools
	switch {
	case len(d.Asks) == 0:
	case d.ByConfig:
		s.Decision, s.DecidedBy = "allowed", "config.yaml"
	case len(d.More) == 0:
		s.Decision, s.DecidedBy, s.DecidedAt = "allowed", d.By, d.At
	case d.Refused:
		s.Decision, s.DecidedBy, s.DecidedAt = "refused", d.By, d.At
	default:
		s.Decision = "none"
	}
	return nil
}

func (x *installation) show(s *shownExtension) {
	p := x.p
	p.line("%s %s%s", s.ID, dash(s.Version), ifSet(" (%s)", s.Name))
	if s.Description != "" {
		p.wrapped(plain, oneLine(s.Description), "")
	}
	p.line("State: %s%s%s", p.paint(stateColor(s.State), strings.ReplaceAll(s.State, "_", " ")), also(s.Readiness),
		ifSet(": %s", brief(s.Detail)))
	if s.Problem != "" {
		p.line("%s %s", p.paint(red, "✗"), s.Problem)
	}
	switch r := s.Installed; {
	case s.Builtin:
		p.line("Source: built in")
	case r == nil:
		p.line("Source: put into the home by hand")
	default:
		p.line("Source: %s%s", r.Source, ifSet(" (commit %s)", shortHash(r.Commit)))
		if r.Publisher != "" {
			p.line("Publisher: %s", r.Publisher)
		}
		p.line("Installed: %s (%s)", p.clock(r.InstalledAt), ago(r.InstalledAt))
		p.line("Hash: sha256 %s", r.Hash)
		if s.Changed {
			p.line("%s", p.paint(yellow, "Its files have changed since it was installed."))
		}
	}
	title := "It asks for your permission to:"
	by := ifSet(" by %s", s.DecidedBy)
	if !s.DecidedAt.IsZero() {
		by += ", " + ago(s.DecidedAt)
	}
	switch s.Decision {
	case "allowed":
		title = fmt.Sprintf("Allowed%s:", by)
	case "refused":
		title = fmt.Sprintf("Refused%s:", by)
	case "":
		if !s.Builtin && s.Version != "" {
			p.line("It asks for no permission.")
		}
	}
	x.lines(title, s.Asks)
	if len(s.More) > 0 && len(s.More) < len(s.Asks) {
		x.lines("Of that, not allowed yet:", s.More)
	}
	if s.Tools {
		p.line("The default agent may use its tools.")
	}
	x.lines("Without asking, it:", s.Uses)
	if len(s.More) > 0 {
		p.faint("To decide: switchboard extensions allow " + s.ID + ", or refuse " + s.ID)
	}
}

// shortHash returns the beginning of a hash.
func shortHash(s string) string {
	if len(s) > 12 {
		return s[:12]
	}
	return s
}
