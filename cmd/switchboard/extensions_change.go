package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/sdk/admin"
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
	if len(args) == 0 {
		return install.Records(x.home)
	}
	r, err := home.Installed(x.c.Context(), x.options, args[0])
	if err != nil {
		return nil, err
	}
	return []install.Record{*r}, nil
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
	if e, err := home.Find(x.options, id); err != nil {
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
	if err := x.installer.Uninstall(x.c.Context(), id, data, func() {
		if before != nil {
			x.wait(id, func(e *adminv1.Extension) bool { return e == nil && !alive(before) })
		}
	}); err != nil {
		return err
	}
	x.p.line("%s is removed.", id)
	if !data {
		x.p.faint("Its data stays in " + x.installer.DataDir(id) + ".")
	}
	return nil
}

// alive reports whether the process of an extension, alone in it, still runs.
func alive(e *adminv1.Extension) bool {
	return e.Pid > 0 && !e.Builtin && !slices.Contains(e.Kinds, "agent") && syscall.Kill(int(e.Pid), 0) == nil
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
		if err = x.open(); err == nil {
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
	changed, err := home.Enable(x.options, id, on)
	if err != nil {
		return err
	}
	is := map[bool]string{true: "enabled", false: "disabled"}[on]
	if !changed {
		x.p.line("%s is %s already.", id, is)
		return nil
	}
	if x.kernel == nil {
		x.p.line("%s is %s.", id, is)
		return nil
	}
	now, ok := x.wait(id, func(e *adminv1.Extension) bool {
		return e != nil && (e.State == stateDisabled) != on && admin.Settled(e)
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
