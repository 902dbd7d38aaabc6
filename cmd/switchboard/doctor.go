package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Levels of a finding.
const (
	levelOK      = "ok"
	levelNote    = "note"    // not a problem, but worth knowing
	levelWarning = "warning" // works, but probably not as intended
	levelError   = "error"   // does not work
)

// finding is the result of one check.
type finding struct {
	Area   string `json:"area"`
	Level  string `json:"level"`
	Text   string `json:"text"`
	Hint   string `json:"hint,omitempty"`   // what to do
	Detail string `json:"detail,omitempty"` // such as the last output of a process
}

// diagnosis collects findings.
type diagnosis struct {
	offline  bool // asks no language model
	allFiles bool // reads all files of messages
	findings []finding
	progress func(format string, args ...any) // announces a slow check; nil: no announcements
}

func (d *diagnosis) add(area, level, hint, format string, args ...any) *finding {
	d.findings = append(d.findings, finding{Area: area, Level: level, Text: fmt.Sprintf(format, args...), Hint: hint})
	return &d.findings[len(d.findings)-1]
}

func newDoctorCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "doctor", Short: "Find problems, and say how to fix them", Args: cobra.NoArgs,
		Long: "Checks the home, the configuration, the manifests, the secrets and the store, and the extensions of a\n" +
			"running kernel. Each language model in use is asked for a few tokens; --offline doesn't. The exit status is 1\n" +
			"if something does not work.",
	}
	asJSON := jsonFlag(c)
	offline := c.Flags().Bool("offline", false, "ask no language model")
	files := c.Flags().Bool("files", false, "read all files of messages, also while a kernel runs")
	c.RunE = func(c *cobra.Command, _ []string) error {
		d := &diagnosis{offline: *offline, allFiles: *files, progress: func(format string, args ...any) {
			fmt.Fprintf(safeText{w: c.ErrOrStderr()}, format+"\n", args...)
		}}
		d.examine(c.Context())
		if *asJSON {
			if err := printJSON(c, d.findings); err != nil {
				return err
			}
		} else {
			printerOf(c).diagnosis(d)
		}
		if d.count(levelError) > 0 {
			return errReported
		}
		return nil
	}
	return c
}

func (d *diagnosis) count(level string) (n int) {
	for _, f := range d.findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

func (p *printer) diagnosis(d *diagnosis) {
	first := map[string]int{} // finding of an area
	for i, f := range slices.Backward(d.findings) {
		first[f.Area] = i
	}
	findings := slices.Clone(d.findings)
	slices.SortStableFunc(findings, func(a, b finding) int { return cmp.Compare(first[a.Area], first[b.Area]) })
	area := ""
	for _, f := range findings {
		if f.Area != area {
			area = f.Area
			p.line("%s", area)
		}
		mark := map[string]string{
			levelOK: p.paint(green, "✓"), levelNote: p.paint(gray, "·"), levelWarning: p.paint(yellow, "!"),
			levelError: p.paint(red, "✗"),
		}[f.Level]
		lines := strings.Split(f.Text, "\n")
		p.line("  %s %s", mark, lines[0])
		for _, l := range lines[1:] {
			p.line("    %s", l)
		}
		if f.Hint != "" {
			p.faint("    " + f.Hint)
		}
		if f.Detail != "" {
			p.faint(indent(f.Detail, "      "))
		}
	}
	p.line("")
	switch bad, odd := d.count(levelError), d.count(levelWarning); {
	case bad > 0 && odd > 0:
		p.line("%s and %s.", p.paint(red, count(bad, "problem")), p.paint(yellow, count(odd, "warning")))
	case bad > 0:
		p.line("%s.", p.paint(red, count(bad, "problem")))
	case odd > 0:
		p.line("No problems, %s.", p.paint(yellow, count(odd, "warning")))
	default:
		p.line("%s", p.paint(green, "No problems."))
	}
}

// examine runs all checks.
func (d *diagnosis) examine(ctx context.Context) {
	h := d.home()
	if h == nil {
		return
	}
	k, err := dial(ctx, h)
	var status *statusReport
	switch {
	case errors.Is(err, admin.ErrNotRunning):
		d.add("Kernel", levelNote, "`switchboard run` starts one. Checks that need a kernel are skipped.",
			"no kernel is running")
	case err != nil:
		d.add("Kernel", levelError, "stop the kernel and start it again", "a kernel is running but doesn't answer: %s",
			message(err))
	default:
		defer k.Close()
		if s, err := statusOf(ctx, k); err != nil {
			d.add("Kernel", levelError, "stop the kernel and start it again", "a kernel is running but doesn't answer: %s",
				message(err))
		} else {
			status = &s
			d.kernel(s.Status)
		}
	}
	o, err := kernelOptions(h)
	var seen *home.Inspection
	if err == nil {
		if seen, err = home.Inspect(o); err == nil {
			d.files(h, seen)
			d.extensionFiles(h, seen, status != nil)
			d.prompts(h, seen)
			if status == nil {
				d.models(modelsOf(seen), provides(seen))
				d.askModels(ctx, h, seen, modelsOf(seen), false)
				d.askTranscribers(ctx, h, seen, false)
			}
		}
	}
	if err != nil {
		d.add("Configuration", levelError, "", "%s", err)
	}
	d.cluster(ctx, h)
	if status == nil {
		d.store(h)
		return
	}
	d.openStore(status.Status)
	d.running(status.Status, seen)
	d.servers(ctx, k, status.Extensions)
	d.askModels(ctx, h, seen, named(seen, status.Models), true)
	d.askTranscribers(ctx, h, seen, true)
	d.deadLetters(ctx, k, status.Status)
	d.sandboxes(status.Status)
	d.openFiles(h)
	d.backups(status.backup, time.Now())
	d.backupFiles(h)
	d.people(status.Status, seen)
	d.askHeartbeat(ctx, k, status.Status)
}

// home opens the home if it exists. That closes its directory to other users, which it
// reports.
func (d *diagnosis) home() *config.Home {
	h, err := findHome()
	if err != nil {
		d.add("Home", levelError, "", "%s", err)
		return nil
	}
	before, err := os.Stat(h.Path())
	if errors.Is(err, fs.ErrNotExist) {
		d.add("Home", levelNote, "to add files first: mkdir -p "+h.Path(), "%s doesn't exist yet; the first start creates it",
			h.Path())
		return h
	}
	if err == nil {
		var opened *config.Home
		if opened, err = openHome(); err == nil {
			h = opened
		}
	}
	if err != nil && !errors.Is(err, config.ErrReadOnly) { // other checks work in a read-only home
		d.add("Home", levelError, "", "%s", err)
		return nil
	}
	switch {
	case before.Mode().Perm()&0o077 != 0:
		d.add("Home", levelWarning, "", "other users could read %s (mode %04o); now they can't", h.Path(),
			before.Mode().Perm())
	default:
		d.add("Home", levelOK, "", "%s, private to you", h.Path())
	}
	for _, file := range []string{h.Config(), h.Database()} {
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o022 != 0 {
			d.add("Home", levelWarning, "chmod 600 "+file, "other users can write %s (mode %04o)", file, info.Mode().Perm())
		}
	}
	if err := writable(h.Path()); err != nil {
		d.add("Home", levelError, "make it writable, or set "+config.HomeEnv+" to another directory",
			"the directory is not writable: %s", err)
	}
	d.space(h.Path())
	return h
}

func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
