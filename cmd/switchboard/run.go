package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/cmd/switchboard/rest"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"

	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/manifests"
)

func newRunCommand() *cobra.Command {
	clustered := false
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the kernel until it is interrupted",
		Long: "Runs the kernel with its extensions until it is interrupted (Ctrl-C or SIGTERM).\n" +
			"It reads config.yaml and secrets.env in the home, and again whenever they change.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := openHome()
			if err != nil {
				return err
			}
			if clustered {
				return runCluster(c, h)
			}
			k, err := openKernel(c.Context(), h)
			if err != nil {
				return err
			}
			p := printerOf(c)
			p.line("Switchboard %s runs on %s.", version, h.Path())
			p.faint("Talk to it with `switchboard chat`; watch it with `switchboard status` and `switchboard logs -f`.")
			var hinting sync.WaitGroup
			hinting.Go(func() { // not to delay the start
				for _, hint := range configHints(k.Inspect()) {
					p.faint("Hint: " + hint)
				}
			})
			defer hinting.Wait()
			go rest.Watch(c.Context())
			return errors.Join(k.Run(c.Context()), k.Close())
		},
	}
	c.Flags().BoolVar(&clustered, "cluster", false, "share the state with other machines, over PostgreSQL")
	return c
}

// A build with crash points sets wrapStore and may replace builtinManifests.
var (
	wrapStore        func(journal.Store) journal.Store
	builtinManifests fs.FS = manifests.FS
)

func kernelOptions(h *config.Home) (home.Options, error) {
	self, err := os.Executable()
	if err != nil {
		return home.Options{}, fmt.Errorf("find the executable: %w", err)
	}
	return home.Options{
		Pinned: h.Clustered(),
		Home:   h, Version: version, Env: os.LookupEnv, Environ: os.Environ(),
		Builtins: builtinManifests, BuiltinsPrefix: manifests.Prefix,
		Builtin: func(members []string) []string { return append([]string{self, extensionCommand}, members...) },
		Confine: []string{self, confineCommand, "--"},
		Program: directory.Program{
			Approve: "switchboard pairing approve", Restart: "switchboard extensions restart",
			Allow: "switchboard extensions allow", Dead: "switchboard events dead", Usage: "switchboard usage",
		},
		Wrap: wrapStore,
	}, nil
}

// stoppingTime bounds the wait for the previous kernel to stop; its extensions take at most
// 20 seconds.
const stoppingTime = 40 * time.Second

// openKernel waits while another kernel shuts down, and while the disk is full.
func openKernel(ctx context.Context, h *config.Home) (*home.Installation, error) {
	o, err := kernelOptions(h)
	if err != nil {
		return nil, err
	}
	return openWith(ctx, o)
}

func openWith(ctx context.Context, o home.Options) (*home.Installation, error) {
	said := ""
	for began := time.Now(); ; {
		k, err := home.Open(ctx, o)
		reason, pause := "", time.Second
		switch {
		case err == nil:
			return k, nil
		case errors.Is(err, home.ErrStopping) && time.Since(began) < stoppingTime:
			reason = "The kernel on this home is shutting down. The new one starts when it has stopped."
			pause = 20 * time.Millisecond
		case errors.Is(err, journal.ErrFull):
			reason = fmt.Sprintf("The disk of %s is full. Free some space: Switchboard starts when there is room. "+
				"Nothing that it accepted is lost.", o.Home.Path())
		default:
			return nil, fmt.Errorf("start the kernel: %w", err)
		}
		if reason != said {
			fmt.Fprintln(os.Stderr, reason)
			said = reason
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("start the kernel: %w", err)
		}
	}
}

// inspect reads the files of the home.
func inspect(h *config.Home) (*home.Inspection, error) {
	o, err := kernelOptions(h)
	if err != nil {
		return nil, err
	}
	return home.Inspect(o)
}

// configHints returns suggestions for the user.
func configHints(seen *home.Inspection) (hints []string) {
	if seen == nil {
		return nil
	}
	if seen.UTC != "" {
		hints = append(hints, seen.UTC)
	}
	for _, e := range seen.Entries {
		switch {
		case e.Waiting != "":
			hints = append(hints, e.ID+": "+e.Waiting)
		case e.Disabled != nil && e.Disabled.Cause != manifests.SwitchedOff:
			hints = append(hints, fmt.Sprintf("%s isn't started; `switchboard doctor` says why", e.ID))
		}
	}
	for _, p := range seen.References {
		hints = append(hints, p.String())
	}
	return hints
}

// startAndChat is what a new user runs: the kernel and a chat in one process,
// or only the chat if a kernel is running already.
func startAndChat(ctx context.Context) error {
	h, err := openHome()
	if err != nil {
		return err
	}
	in := os.Stdin // home.Open replaces it
	k, err := openKernel(ctx, h)
	if errors.Is(err, home.ErrRunning) && !errors.Is(err, home.ErrStopping) {
		o := terminal.Options{In: in}
		o.Greeting, o.Hint = greetingOf(ctx, h)
		return chat(ctx, h, o)
	}
	if err != nil {
		return err
	}
	runCtx, stop := context.WithCancel(ctx)
	defer stop()
	go rest.Watch(runCtx)
	chatCtx, leave := context.WithCancel(ctx)
	defer leave()
	done := make(chan error, 1)
	go func() {
		done <- k.Run(runCtx)
		leave() // also when the kernel fails
	}()
	seen := k.Inspect()
	models := modelsOf(seen)
	hints := configHints(seen)
	if hint := setupHint(models); hint != "" {
		hints = append([]string{hint}, hints...)
	}
	o := terminal.Options{In: in, NoSuspend: true, Greeting: greeting(models), Hint: strings.Join(hints, "\n")}
	chatErr := chat(chatCtx, h, o)
	if chatCtx.Err() == nil {
		printPending(ctx, os.Stderr, h) // a script may read stdout
	}
	stop()
	err = <-done
	return errors.Join(chatErr, err, k.Close())
}

// printPending lists the pending reminders, which need a running kernel.
func printPending(ctx context.Context, w io.Writer, h *config.Home) {
	ctx, cancel := context.WithTimeout(ctx, pendingTime)
	defer cancel()
	k, err := dial(ctx, h)
	if err != nil {
		return
	}
	defer k.Close()
	found, err := callTool[scheduleList](ctx, k, listSchedules, map[string]any{"limit": 5})
	if err != nil {
		return
	}
	var lines []string
	for _, s := range found.Schedules {
		if s.State == "active" && s.Next != nil {
			lines = append(lines, fmt.Sprintf("  %s  %s, %s, in %s", s.ID, quote(s.Message), s.NextLocal, s.In))
		}
	}
	switch n := len(lines) + found.More; n {
	case 0:
		return
	case 1:
		fmt.Fprintln(w, "One reminder is pending. It arrives only while Switchboard is running:")
	default:
		fmt.Fprintf(w, "%d reminders are pending. They arrive only while Switchboard is running:\n", n)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
	if found.More > 0 {
		fmt.Fprintf(w, "  and %d more\n", found.More)
	}
	fmt.Fprintln(w, "`switchboard run` keeps it running, `switchboard service install` also after a restart of the "+
		"machine. Reminders that come due meanwhile arrive late, when it runs again.")
}

// pendingTime bounds printPending.
const pendingTime = 2 * time.Second
