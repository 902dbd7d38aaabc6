package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/cmd/switchboard/dev"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newExtensionsDev() *cobra.Command {
	c := &cobra.Command{
		Use: "dev DIR", Short: "Run an extension while you write it", Args: cobra.ExactArgs(1),
		Long: "Runs the extension of a directory on a kernel and a home of its own. At each change it builds and restarts\n" +
			"it. It shows the extension's log, its events, what it commits and what is refused and why, and\n" +
			"reads commands to say something to it, to publish events and to replay them: `help` lists them.\n" +
			"Your own installation is neither read nor changed.",
		Example: "  switchboard extensions dev .",
	}
	fresh := c.Flags().Bool("fresh", false, "begin with an empty home: no events, no values, default settings")
	c.RunE = func(c *cobra.Command, args []string) error {
		d, err := openDev(c, args[0], *fresh)
		if err == nil {
			err = d.run(c.Context())
		}
		if err != nil && !errors.Is(err, errReported) {
			return fmt.Errorf("run %s while it is written: %w", args[0], err)
		}
		return err
	}
	return c
}

// devLoop is one run of `extensions dev`.
type devLoop struct {
	p        *printer
	in       *os.File // home.Open replaces standard input
	dir      string
	id       string
	home     *config.Home
	options  home.Options
	kernel   *admin.Client
	printing sync.Mutex
	files    map[string]string // of the last build
	// Of the last manifest that was right: the file that is built, and the version.
	executable, version string
	replayed            int64 // seq of the event that step replayed last
}

func openDev(c *cobra.Command, dir string, fresh bool) (*devLoop, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &devLoop{p: printerOf(c), in: os.Stdin, dir: manifests.ResolveLinks(dir)}
	m, err := d.manifest()
	if err != nil {
		return nil, err
	}
	d.id, d.executable, d.version = m.ID, filepath.Base(m.Run.Command), m.Version
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	path, err := dev.Home(m, d.dir, program)
	if err == nil && fresh {
		if err = os.RemoveAll(path); err == nil {
			path, err = dev.Home(m, d.dir, program)
		}
	}
	if err != nil {
		return nil, err
	}
	if d.home, err = config.OpenHomeAt(path); err != nil {
		return nil, err
	}
	d.options, err = kernelOptions(d.home)
	return d, err
}

func (d *devLoop) manifest() (*manifests.Manifest, error) {
	if _, err := os.Stat(filepath.Join(d.dir, manifests.FileName)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: create an extension with `switchboard extensions new NAME`",
			d.dir, manifests.FileName)
	}
	return manifests.Load(d.dir)
}

// tell prints one line of the loop.
func (d *devLoop) tell(kind, format string, args ...any) {
	d.printing.Lock()
	defer d.printing.Unlock()
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	color, ok := map[string]paint{"error": red, "refused": red, "build": green, "ready": green}[kind]
	if !ok {
		color = gray
	}
	d.p.line("%s %s", d.p.paint(color, fmt.Sprintf("%-8s", kind)), strings.ReplaceAll(text, "\n", "\n         "))
}

func (d *devLoop) run(ctx context.Context) error {
	if err := d.build(ctx); err != nil {
		d.tell("error", "%v", err) // the next change may mend it
	}
	d.files, _ = dev.Files(d.dir, d.executable)
	o, commits := d.options, make(chan dev.Commit, 1024)
	o.Wrap = func(s journal.Store) journal.Store {
		return dev.Observe(s, func(c dev.Commit) {
			select {
			case commits <- c:
			default: // more than a person reads
			}
		})
	}
	k, err := home.Open(ctx, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- k.Run(ctx)
		stop()
	}()
	var parts sync.WaitGroup
	defer func() {
		stop()
		parts.Wait()
	}()
	if d.kernel, err = d.connect(ctx); err != nil {
		stop()
		return errors.Join(err, <-done, k.Close())
	}
	defer d.kernel.Close()
	d.tell("home", "%s\nits settings are in config.yaml and secrets.env there; `help` lists the commands", d.home.Path())
	d.report(ctx)
	parts.Go(func() { d.commits(ctx, commits) })
	parts.Go(func() { d.deliveries(ctx) })
	parts.Go(func() { d.logs(ctx) })
	parts.Go(func() {
		scan := func() bool { return d.changed(ctx) }
		filewatch.Run(ctx, filewatch.Target{Paths: d.watched, Scan: scan, Poll: 2 * time.Second})
	})
	go d.read(ctx, stop) // a read of standard input ends with the process
	err = <-done
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, k.Close())
}

// connect waits until the kernel answers.
func (d *devLoop) connect(ctx context.Context) (*admin.Client, error) {
	for {
		k, err := dial(ctx, d.home)
		if err == nil || !errors.Is(err, admin.ErrNotRunning) {
			return k, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(startPoll):
		}
	}
}

// build reads the manifest and builds the extension.
func (d *devLoop) build(ctx context.Context) error {
	m, err := d.manifest()
	if err != nil {
		return err
	}
	began := time.Now()
	slow := time.AfterFunc(time.Second, func() { d.tell("build", "building; the first time takes longest") })
	built, err := dev.Build(ctx, d.dir, m)
	slow.Stop()
	if err != nil {
		return err
	}
	if d.executable, d.version = filepath.Base(m.Run.Command), m.Version; built {
		d.tell("build", "done in %s", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

func (d *devLoop) watched() []string {
	_, dirs := dev.Files(d.dir, d.executable)
	return dirs
}

// changed builds and restarts the extension if its files have changed.
func (d *devLoop) changed(ctx context.Context) bool {
	files, _ := dev.Files(d.dir, d.executable)
	if maps.Equal(files, d.files) {
		return false
	}
	var names []string
	for file, state := range files {
		if d.files[file] != state {
			names = append(names, filepath.Base(file))
		}
	}
	d.files = files
	d.tell("change", "%s", strings.Join(names, ", "))
	if err := d.build(ctx); ctx.Err() != nil {
		return false
	} else if err != nil {
		d.tell("error", "%v\nthe previous one goes on", err)
		return false
	}
	d.restart(ctx)
	return false
}

// restart restarts the extension and says how it is.
func (d *devLoop) restart(ctx context.Context) {
	if _, err := d.kernel.Restart(ctx, &adminv1.RestartRequest{Id: d.id}); err != nil {
		d.tell("error", "restart %s: %v", d.id, err)
	}
	d.report(ctx)
}

// report says how the extension is, as soon as it has settled.
func (d *devLoop) report(ctx context.Context) {
	for {
		all, err := admin.Extensions(ctx, d.kernel)
		if err != nil {
			d.tell("error", "%v", err)
			return
		}
		for _, x := range all {
			switch {
			case x.Id != d.id || x.State == "starting" || x.State == "inactive" || x.State == "stopping":
				continue
			case x.State == "active" && x.Version != d.version: // the kernel has yet to read the manifest
				continue
			case x.State == "active":
				d.tell("ready", "%s %s%s", d.id, x.Version, also(x.Readiness))
			default:
				d.tell("error", "%s is %s: %s", d.id, x.State, x.Detail)
			}
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(startPoll):
		}
	}
}
