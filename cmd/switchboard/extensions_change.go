package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/near"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
)

func newExtensionsUpdate() *cobra.Command {
	var f fetchFlags
	c := &cobra.Command{
		Use: "update [ID]", Short: "Update an installed extension, or all", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: first(extensionIDs),
		Long: "Fetches an extension again from where it was installed, shows what changes, and replaces it if anything\n" +
			"does. The old version runs until the new one is whole. Without ID, updates all that were installed.",
	}
	f.add(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		x, err := openInstallation(c, f)
		if err != nil {
			return x.said(err, "update")
		}
		defer x.close()
		records, err := x.installed(args)
		if err != nil {
			return x.said(err, "update")
		}
		if len(records) == 0 {
			x.p.line("No extension was installed with `switchboard extensions install`.")
		}
		failed := false
		for _, r := range records {
			err := x.said(x.install(r.Source, &r), "update "+r.ID)
			if err != nil && (len(records) == 1 || c.Context().Err() != nil) {
				return err
			}
			if err != nil {
				failed = true
				x.p.line("%s %s", x.p.paint(red, "✗"), message(err))
			}
		}
		if failed {
			return errReported
		}
		return nil
	}
	return c
}

// installed returns the record of the extension that args name, or all.
func (x *installation) installed(args []string) ([]install.Record, error) {
	all, err := install.Records(x.home)
	if len(args) == 0 {
		return all, err
	}
	for _, r := range all {
		if r.ID == args[0] {
			return []install.Record{r}, nil
		}
	}
	if _, err := install.Read(x.c.Context(), x.home, args[0]); errors.Is(err, install.ErrNotInstalled) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w, so its source isn't known", args[0], install.ErrForeign)
}

func newExtensionsRemove() *cobra.Command {
	var f fetchFlags
	c := &cobra.Command{
		Use: "remove ID", Short: "Remove an extension", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(extensionIDs),
		Long: "Removes the files of an extension; a running kernel stops it first. Its data stays for when you install\n" +
			"it again; --data removes that as well.",
	}
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	data := c.Flags().Bool("data", false, "also remove its data")
	c.RunE = func(c *cobra.Command, args []string) error {
		x, err := openInstallation(c, f)
		if err == nil {
			defer x.close()
			err = x.remove(args[0], *data)
		}
		return x.said(err, "remove "+args[0])
	}
	return c
}

func (x *installation) remove(id string, data bool) error {
	if e, err := x.find(id); err != nil {
		return err
	} else if e.Builtin {
		return fmt.Errorf("%s is built in: `switchboard extensions disable %s` stops it", id, id)
	}
	what := "its data stays"
	if data {
		what = "and all its data, for good"
	}
	err := x.confirm(fmt.Sprintf("Remove %s (%s)?", id, what), "add --yes to confirm")
	if err != nil {
		return err
	}
	before := x.row(x.c.Context(), id)
	discard, err := x.installer.Remove(x.c.Context(), id)
	if err != nil {
		return err
	}
	if before != nil {
		x.wait(id, func(e *adminv1.Extension) bool { return e == nil && !alive(before) })
	}
	if err := errors.Join(discard(), x.installer.Forget(id)); err != nil {
		return err
	}
	x.p.line("%s is removed.", id)
	if data {
		return x.installer.RemoveData(id)
	}
	x.p.faint("Its data stays in " + x.installer.DataDir(id) + ".")
	return nil
}

// alive reports whether the process of an extension, alone in it, still runs.
func alive(e *adminv1.Extension) bool {
	return e.Pid > 0 && !e.Builtin && !slices.Contains(e.Kinds, "agent") && syscall.Kill(int(e.Pid), 0) == nil
}

// known is an extension by the files of the home.
type known struct{ Builtin, Optional, Enabled bool }

// find returns an extension, or an error that suggests another name.
func (x *installation) find(id string) (k known, err error) {
	seen, err := inspect(x.home)
	if err != nil {
		return k, err
	}
	settings, err := config.Load(x.home.Config())
	if err != nil {
		return k, fmt.Errorf("config.yaml has errors; fix them first:\n%w", err)
	}
	var ids []string
	for _, e := range seen.Entries {
		ids = append(ids, e.ID)
		if e.ID == id {
			k.Builtin, k.Optional = e.Builtin, e.Manifest != nil && e.Manifest.Optional
			k.Enabled = settings.EnabledExtension(id, k.Optional)
			return k, nil
		}
	}
	hint := "`switchboard extensions list` lists them"
	if s := near.Best(id, ids); s != "" {
		hint = fmt.Sprintf("did you mean %s?", s)
	}
	return k, fmt.Errorf("there is no extension %s (%s)", id, hint)
}

func newExtensionsEnable() *cobra.Command {
	return switchCommand("enable ID", "Enable an extension",
		"Sets extensions.ID.enabled in config.yaml, with its comments kept. A running kernel starts it.", true)
}

func newExtensionsDisable() *cobra.Command {
	return switchCommand("disable ID", "Disable an extension, and keep it",
		"Sets extensions.ID.enabled to false in config.yaml, with its comments kept. A running kernel stops it.", false)
}

func switchCommand(use, short, long string, on bool) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1), ValidArgsFunction: first(extensionIDs),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		x := &installation{c: c, p: printerOf(c)}
		var err error
		if x.home, err = openHome(); err == nil {
			x.kernel, _ = dial(c.Context(), x.home)
			err = x.enable(args[0], on)
		}
		if x.kernel != nil {
			x.kernel.Close()
		}
		verb, _, _ := strings.Cut(use, " ")
		return x.said(err, verb+" "+args[0])
	}
	return c
}

// enable writes into config.yaml whether an extension is enabled.
func (x *installation) enable(id string, on bool) error {
	k, err := x.find(id)
	if err != nil {
		return err
	}
	is := map[bool]string{true: "enabled", false: "disabled"}[on]
	if k.Enabled == on {
		x.p.line("%s is %s already.", id, is)
		return nil
	}
	text, err := existing(x.home.Config())
	if err != nil {
		return err
	}
	changed, err := config.Edit(x.home.Config(), text,
		config.Setting{Path: []string{"extensions", id, "enabled"}, Value: on})
	if err != nil {
		return err
	}
	if err := config.Replace(x.home.Config(), changed); err != nil {
		return err
	}
	if x.kernel == nil {
		x.p.line("%s is %s.", id, is)
		return nil
	}
	now, ok := x.wait(id, func(e *adminv1.Extension) bool {
		return e != nil && (e.State == stateDisabled) != on && settledState(e.State)
	})
	switch {
	case !ok || now == nil:
		x.p.line("%s is %s. The running kernel hasn't followed yet: `switchboard extensions list` shows it.", id, is)
	case on:
		x.p.line("%s is enabled: %s%s.", id, strings.ReplaceAll(now.State, "_", " "), also(now.Readiness))
		if now.State != "active" && now.Detail != "" {
			x.p.faint(brief(now.Detail))
		}
	default:
		x.p.line("%s is disabled.", id)
	}
	return nil
}
