package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/install"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// fetchFlags are those of commands that fetch extensions.
type fetchFlags struct {
	insecure, replace, yes bool
	allow, allowTools      bool
	timeout                time.Duration
}

func (f *fetchFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.insecure, "insecure", false, "allow http to other machines, which anyone on the way can change")
	flags.BoolVar(&f.replace, "replace", false, "replace files that you put or changed there by hand")
	flags.BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&f.allow, "allow", false, "allow what the extension asks for")
	flags.BoolVar(&f.allowTools, "allow-tools", false, "also give its tools to the default agent")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long fetching may take")
}

func newExtensionsInstall() *cobra.Command {
	var f fetchFlags
	var index string
	c := &cobra.Command{
		Use: "install SOURCE", Short: "Install an extension", Args: cobra.ExactArgs(1),
		Long: "Installs an extension from a directory, an archive (.tar.gz or .zip, a file or an https address), a git\n" +
			"repository (its address, and @ with a branch, a tag or a commit), or by its name in an index. Everything\n" +
			"is checked before it is in the home, and nothing of it runs meanwhile. A running kernel starts it, or\n" +
			"replaces the version that runs: nothing is lost.\n\n" +
			"The output shows what it asks for beyond itself. On a terminal you are asked; otherwise --allow allows it,\n" +
			"or later `switchboard extensions allow`. What isn't allowed doesn't run.",
		Example: "  switchboard extensions install ./jotter\n" +
			"  switchboard extensions install https://example.org/jotter-1.2.0.tar.gz\n" +
			"  switchboard extensions install https://example.org/jane/jotter@v1.2.0\n" +
			"  switchboard extensions install jotter --index https://example.org/extensions/",
	}
	f.add(c)
	c.Flags().StringVar(&index, "index", "",
		"the index that has SOURCE as a name: a file, a directory or an https address")
	c.RunE = func(c *cobra.Command, args []string) error {
		from, err := install.ParseSource(args[0], index)
		if err != nil {
			return fmt.Errorf("install %w", err)
		}
		x, err := openInstallation(c, f)
		if err == nil {
			defer x.close()
			err = x.install(from, nil)
		}
		return x.said(err, "install "+args[0])
	}
	return c
}

// installation is one run of a command that changes the extensions of a home.
type installation struct {
	fetchFlags
	c         *cobra.Command
	p         *printer
	home      *config.Home
	options   home.Options
	installer *home.Installer
	kernel    *admin.Client // nil: none is running
}

func openInstallation(c *cobra.Command, f fetchFlags) (*installation, error) {
	x := &installation{fetchFlags: f, c: c, p: printerOf(c)}
	err := x.open()
	if err != nil {
		return x, err
	}
	x.installer, err = home.OpenInstaller(x.options, install.Options{Insecure: f.insecure, Timeout: f.timeout})
	if err != nil {
		return x, err
	}
	if x.kernel, err = dial(c.Context(), x.home); err != nil && !errors.Is(err, admin.ErrNotRunning) {
		x.close()
		return x, err
	}
	return x, nil
}

// open finds the home and creates what is missing in it.
func (x *installation) open() (err error) {
	if x.home, err = openHome(); err == nil {
		x.options, err = kernelOptions(x.home)
	}
	return err
}

func (x *installation) close() {
	_ = x.installer.Close() // the lock ends with the process
	if x.kernel != nil {
		x.kernel.Close()
	}
}

// said makes an error of a command from one of its parts.
func (x *installation) said(err error, action string) error {
	switch {
	case err == nil || errors.Is(err, errReported):
		return err
	case x.c.Context().Err() != nil || errors.Is(err, errLeft):
		x.p.line("\nInterrupted: nothing was changed.")
		return errReported
	case errors.Is(err, install.ErrForeign), errors.Is(err, install.ErrChanged):
		err = fmt.Errorf("%w; to replace it, add --replace", err)
	case errors.Is(err, home.ErrAsksMore):
		err = fmt.Errorf("%w; add --allow to allow it", err)
	}
	between := " "
	if strings.Contains(err.Error(), "\n") {
		between = "\n"
	}
	return fmt.Errorf("%s:%s%w", action, between, err)
}

// install fetches an extension and makes it visible. Known is the record of the installed
// one for an update, which may find that there is nothing new.
func (x *installation) install(from install.Source, known *install.Record) error {
	ctx := x.c.Context()
	x.p.faint("Fetching " + from.String())
	o, err := x.installer.Offer(ctx, from, known)
	if err != nil {
		return err
	}
	defer o.Discard() //nolint:errcheck // the next installation removes it
	if known != nil && o.Current() {
		x.p.line("%s %s is up to date.", o.Manifest.ID, o.Manifest.Version)
		return nil
	}
	if err := o.Foreign(); err != nil && !x.replace {
		return err
	}
	if o.Old == nil || o.Old.Manifest == nil {
		x.describe(o)
	} else if err := x.compare(o); err != nil {
		return err
	}
	answer, err := x.decide(o)
	if err != nil {
		return err
	}
	before := x.row(ctx, o.Manifest.ID)
	asked, err := o.Install(ctx, answer)
	if err != nil {
		return err
	}
	return x.report(o.Manifest, asked, before)
}

// decide asks the person on the terminal, or takes the answer of flags.
func (x *installation) decide(o *home.Offer) (home.Answer, error) {
	a := home.Answer{Allow: x.allow || x.allowTools, Tools: x.allowTools, Replace: x.replace, By: decider()}
	if a.Allow || o.Asked.Allowed() || x.yes || !onTerminal() {
		return a, nil
	}
	question, keys := "Allow it? [y]es, [N]o ", "y"
	offers := o.Manifest.Provides.Tools && !o.Asked.Tools
	if offers {
		question, keys = "Allow it? [y]es, yes and give its [t]ools to the default agent, [N]o ", "yt"
	}
	answer, err := (&questions{in: os.Stdin, p: x.p}).line(x.c.Context(), question, false)
	if answer = strings.ToLower(answer); answer != "" {
		a.Allow, a.Tools = strings.ContainsAny(answer[:1], keys), answer[:1] == "t" && offers
	}
	return a, err
}

func onTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) } //nolint:gosec // a descriptor is an int

// describe shows a new extension.
func (x *installation) describe(o *home.Offer) {
	m := o.Manifest
	x.p.line("%s %s (%s)%s", m.ID, m.Version, m.Name, ifSet(": %s", oneLine(m.Description)))
	x.p.line("Source: %s%s", o.Record.Source, ifSet(", publisher: %s", o.Record.Publisher))
	x.lines("It asks for your permission to:", o.Asked.Asks.Lines(""))
	x.lines("Without asking, it:", o.Asked.Uses)
}

// compare shows how a version differs from the installed one.
func (x *installation) compare(o *home.Offer) error {
	m, old, had, asked := o.Manifest, o.Old, o.Had, o.Asked
	change := fmt.Sprintf("%s: version %s → %s", m.ID, old.Manifest.Version, m.Version)
	if m.Version == old.Manifest.Version {
		change = fmt.Sprintf("%s: version %s, with other files", m.ID, m.Version)
	}
	x.p.line("%s", change)
	if r := old.Record; r != nil && r.Publisher != o.Record.Publisher {
		x.p.line("Publisher: %s → %s", dash(r.Publisher), dash(o.Record.Publisher))
	}
	x.lines("It asks for more, your permission to:", had.Asks.Beyond(asked.Asks).Lines(""))
	x.lines("It no longer asks to:", asked.Asks.Beyond(had.Asks).Lines(""))
	x.lines("New without asking, it:",
		slices.DeleteFunc(slices.Clone(asked.Uses), func(l string) bool { return slices.Contains(had.Uses, l) }))
	if o.Older() && !x.yes {
		return x.confirm(fmt.Sprintf("%s is older than %s. Install it?", m.Version, old.Manifest.Version),
			fmt.Sprintf("%s is older than %s, the installed version; add --yes to install it", m.Version, old.Manifest.Version))
	}
	return nil
}

func (x *installation) lines(title string, all []string) {
	if len(all) == 0 {
		return
	}
	x.p.line("%s", title)
	for _, l := range all {
		x.p.wrapped(plain, "  - "+l, "    ")
	}
}

// confirm asks a person, and without a terminal is the error refused.
func (x *installation) confirm(question, refused string) error {
	if x.yes {
		return nil
	}
	if !onTerminal() {
		return errors.New(refused)
	}
	answer, err := (&questions{in: os.Stdin, p: x.p}).line(x.c.Context(), question+" [y/N] ", false)
	if err != nil {
		return err
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		x.p.line("Nothing was changed.")
		return errReported
	}
	return nil
}

// row returns the running kernel's row of an extension; nil: there is none.
func (x *installation) row(ctx context.Context, id string) *adminv1.Extension {
	if x.kernel == nil {
		return nil
	}
	all, err := admin.Extensions(ctx, x.kernel)
	if err != nil {
		return nil
	}
	if i := slices.IndexFunc(all, func(e *adminv1.Extension) bool { return e.Id == id }); i >= 0 {
		return all[i]
	}
	return nil
}

// wait waits until a running kernel has the row of an extension that is wanted, and returns
// the last one.
func (x *installation) wait(id string, wanted func(*adminv1.Extension) bool) (last *adminv1.Extension, ok bool) {
	ctx, cancel := context.WithTimeout(x.c.Context(), takeOver)
	defer cancel()
	return admin.Await(ctx, x.kernel, id, wanted)
}

// report tells what a running kernel makes of a version that is in the home now.
func (x *installation) report(m *manifests.Manifest, asked home.Consent, before *adminv1.Extension) error {
	done := x.p.paint(green, "✓")
	if x.kernel == nil {
		if err := x.installer.Settle(m); err != nil {
			return err
		}
		if !asked.Allowed() {
			x.notAllowed(m, asked)
			return nil
		}
		x.p.line("%s %s %s is installed. It starts with Switchboard.", done, m.ID, m.Version)
		return nil
	}
	now, ok := x.wait(m.ID, func(e *adminv1.Extension) bool {
		switch {
		case e == nil || e.Version != m.Version || !admin.Settled(e):
			return false
		case e.State == stateNotAllowed && asked.Allowed():
			return false // the kernel has not read the decision yet
		case before != nil && before.Pid != 0 && m.Run.Command != "" && e.State == "active":
			return e.Pid != before.Pid
		}
		return true
	})
	if ok {
		if err := x.installer.Settle(m); err != nil {
			return err
		}
	}
	switch {
	case !ok || now == nil:
		x.p.line("%s %s %s is installed. The running kernel hasn't started it yet: `switchboard extensions list` shows it.",
			done, m.ID, m.Version)
	case now.State == "active":
		x.p.line("%s %s %s is installed and active%s.", done, m.ID, m.Version, also(now.Readiness))
		if now.Detail != "" {
			x.p.faint(now.Detail)
		}
	case now.State == stateNotAllowed:
		x.notAllowed(m, asked)
	case now.State == "failed" || now.State == "backing_off":
		return fmt.Errorf("%s %s is installed, but it is %s: %s; see `switchboard logs %s`", m.ID, m.Version,
			strings.ReplaceAll(now.State, "_", " "), brief(now.LastError), m.ID)
	default:
		x.p.line("%s %s %s is installed. It doesn't run (%s)%s", done, m.ID, m.Version, now.State,
			ifSet(": %s", brief(now.Detail)))
	}
	return nil
}

// notAllowed tells how to allow an extension that is installed.
func (x *installation) notAllowed(m *manifests.Manifest, asked home.Consent) {
	why := "It doesn't run until you allow it"
	if asked.Refused {
		why = "You refused what it asks for, so it doesn't run. To allow it"
	}
	x.p.line("%s %s %s is installed. %s: switchboard extensions allow %s", x.p.paint(green, "✓"), m.ID, m.Version,
		why, m.ID)
	if m.Provides.Tools {
		x.p.faint("With --tools, the default agent may use its tools.")
	}
}

// ifSet formats a text that is not empty.
func ifSet(format, s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(format, s)
}
