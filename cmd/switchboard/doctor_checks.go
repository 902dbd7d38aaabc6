package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/agent"
	"github.com/switchboard-run/switchboard/extensions/mcp"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/cluster/shared"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Limits of free disk space for a warning and an error.
const (
	littleSpace = 500 << 20
	noSpace     = 50 << 20
)

func (d *diagnosis) space(dir string) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		d.add("Home", levelWarning, "", "its free disk space is unknown: %s", err)
		return
	}
	free := fs.Bavail * uint64(fs.Bsize) //nolint:gosec,unconvert // not negative; its type differs by system
	switch text := humanize.IBytes(free) + " free on its disk"; {
	case free < noSpace:
		d.add("Home", levelError, "free some space: new messages are refused when the disk is full", "%s", text)
	case free < littleSpace:
		d.add("Home", levelWarning, "free some space: new messages are refused when the disk is full", "%s", text)
	default:
		d.add("Home", levelOK, "", "%s", text)
	}
}

func (d *diagnosis) kernel(s admin.Status) {
	d.add("Kernel", levelOK, "", "version %s runs since %s, pid %d", s.Version,
		at(s.StartedAtUs).Local().Format("2006-01-02 15:04:05"), s.Pid)
	if s.Version != version {
		d.add("Kernel", levelWarning, "restart the kernel", "this command line is version %s", version)
	}
}

// files checks config.yaml and secrets.env.
func (d *diagnosis) files(h *config.Home, seen *home.Inspection) {
	for _, f := range []struct {
		path string
		err  error
	}{{h.Config(), seen.ConfigErr}, {h.Secrets(), seen.SecretsErr}} {
		switch _, err := os.Stat(f.path); {
		case f.err != nil:
			for problem := range strings.SplitSeq(f.err.Error(), "\n") {
				d.add("Configuration", levelError, "", "%s", problem)
			}
			d.findings[len(d.findings)-1].Hint = "Fix it: the running kernel keeps the old settings; a new one won't start."
		case err != nil:
			d.add("Configuration", levelOK, "", "%s doesn't exist, and isn't needed", f.path)
		default:
			d.add("Configuration", levelOK, "", "%s", f.path)
		}
	}
	for _, path := range shared.Asides(h) {
		d.add("Configuration", levelWarning, "put what you still want of it into the file, and delete it",
			"%s: an edit that is not in force", path)
	}
	if seen.ConsentErr != nil {
		d.add("Configuration", levelError, "Nothing runs that it does not allow.", "%s", seen.ConsentErr)
	}
	if seen.ServersErr != nil {
		for problem := range strings.SplitSeq(seen.ServersErr.Error(), "\n") {
			d.add("Configuration", levelError, "", "%s", problem)
		}
		d.findings[len(d.findings)-1].Hint = "Fix it: the running kernel keeps the old servers; a new one connects none."
	}
	for _, p := range seen.References {
		d.add("Configuration", levelWarning, "", "%s", p)
	}
	for _, name := range seen.Unread {
		d.add("Configuration", levelWarning, "correct the name, or remove the line", "%s: nothing reads %s", h.Secrets(),
			name)
	}
	if seen.UTC != "" {
		d.add("Configuration", levelWarning, fmt.Sprintf("echo 'timezone: Europe/Berlin' >> %s", h.Config()), "%s", seen.UTC)
	} else {
		d.add("Configuration", levelOK, "", "timezone %s", seen.Timezone)
	}
}

// extensionFiles checks manifests, executables and secrets. With a running kernel it skips
// secrets: the kernel's environment counts, not this one's.
func (d *diagnosis) extensionFiles(h *config.Home, seen *home.Inspection, running bool) {
	good := 0
	for _, e := range seen.Entries {
		switch {
		case e.Disabled != nil && e.Disabled.Cause == manifests.SwitchedOff:
			switch {
			case e.ID == mcp.ID:
				d.add("Extensions", levelNote, "", "%s runs while mcp.json has servers, unless config.yaml disables it", e.ID)
			case e.Manifest.Optional && needsSecret(e.Manifest):
				d.add("Extensions", levelNote, "", "%s is optional; set %s to use it", e.ID, e.Manifest.Secrets[0].Name)
			case e.Manifest.Optional:
				d.add("Extensions", levelNote, "", "%s is optional; enable it in config.yaml: extensions: {%s: {}}", e.ID, e.ID)
			default:
				d.add("Extensions", levelNote, "", "%s is disabled in config.yaml", e.ID)
			}
			continue
		case e.Err != nil:
			for problem := range strings.SplitSeq(e.Err.Error(), "\n") {
				d.add("Extensions", levelError, "", "%s", problem)
			}
			if e.Disabled == nil {
				d.findings[len(d.findings)-1].Hint = "The previous version stays in effect."
			}
			continue
		case e.Disabled != nil && e.Disabled.Cause == manifests.Consent:
			d.add("Extensions", levelWarning, "", "%s doesn't run: %s", e.ID, e.Waiting)
			continue
		case e.Disabled != nil:
			d.add("Extensions", levelError, "", "%s cannot start: %s", e.ID, e.Disabled.Reason)
			continue
		case e.Waiting != "":
			d.add("Extensions", levelWarning, "", "%s: %s", e.ID, e.Waiting)
		}
		good++
		for _, why := range e.Unused {
			d.add("Extensions", levelWarning, "", "%s: %s", e.ID, why)
		}
		if command := e.Manifest.Executable(); command != "" {
			if err := executable(command); err != nil {
				d.add("Extensions", levelError, "build it, or correct run.command in "+e.Manifest.File, "%s cannot start: %s",
					e.ID, err)
			}
		}
		if running {
			continue
		}
		for _, name := range e.Missing {
			d.add("Extensions", levelNote, setSecret(h, name), "%s (%s) is not set up: %s is missing", e.Manifest.Name,
				e.ID, name)
		}
	}
	d.add("Extensions", levelOK, "", "%s can start", count(good, "extension"))
}

func needsSecret(m *manifests.Manifest) bool {
	return slices.ContainsFunc(m.Secrets, func(s manifests.Secret) bool { return s.Required })
}

// prompts finds system prompts that contain the time.
func (d *diagnosis) prompts(h *config.Home, seen *home.Inspection) {
	for _, e := range seen.Entries {
		if e.Manifest == nil || e.Manifest.Agent == nil {
			continue
		}
		for _, file := range agent.Timed(filepath.Join(h.Path(), "data", e.ID)) {
			d.add("Extensions", levelWarning, "remove the time from it: each message tells it to the agent (prompts/now.md)",
				"%s: the system prompt of %s depends on the time, so model providers can't cache a conversation, and it costs more",
				file, e.ID)
		}
	}
}

func setSecret(h *config.Home, name string) string {
	return fmt.Sprintf("to set it up: (umask 077; echo '%s=...' >> %s), or set it in the kernel's environment", name,
		h.Secrets())
}

func executable(command string) error {
	if !strings.ContainsRune(command, os.PathSeparator) {
		_, err := exec.LookPath(command)
		return err
	}
	switch info, err := os.Stat(command); {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s does not exist", command)
	case err != nil:
		return err
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s cannot be executed: chmod +x %[1]s", command)
	}
	return nil
}

// offlineModel needs no configuration.
const offlineModel = "offline/grammar"

// modelsOf returns the models that a kernel would use, in order.
func modelsOf(seen *home.Inspection) []string {
	if seen == nil {
		return nil
	}
	if len(seen.ModelOrder) > 0 {
		return named(seen, seen.ModelOrder)
	}
	var models []string
	for _, e := range seen.Entries {
		if e.Disabled == nil && e.Manifest != nil && len(e.Manifest.Provides.Models) > 0 && len(e.Missing) == 0 {
			models = append(models, e.Manifest.Provides.Models[0])
		}
	}
	if others := slices.DeleteFunc(slices.Clone(models),
		func(m string) bool { return m == offlineModel }); len(others) > 0 {
		models = others
	}
	return named(seen, models)
}

// named replaces each <provider>/* by the provider's default model, if its files name one.
func named(seen *home.Inspection, models []string) []string {
	if seen == nil {
		return models
	}
	models = slices.Clone(models)
	for _, p := range providersOf(seen) {
		if i := slices.Index(models, p.id+"/*"); i >= 0 && p.standard() != "" {
			models[i] = p.id + "/" + p.standard()
		}
	}
	return models
}

// provides reports whether an extension on disk provides models.
func provides(seen *home.Inspection) func(id string) bool {
	return func(id string) bool {
		return slices.ContainsFunc(seen.Entries, func(e home.InspectedEntry) bool {
			return e.ID == id && e.Manifest != nil && len(e.Manifest.Provides.Models) > 0
		})
	}
}

// models checks the models in use.
func (d *diagnosis) models(models []string, provided func(id string) bool) {
	missing := slices.DeleteFunc(slices.Clone(models), func(m string) bool {
		provider, _, _ := strings.Cut(m, "/")
		return provided(provider)
	})
	switch {
	case len(models) == 0:
		d.add("Model", levelError, "run `switchboard setup`, or enable the extension offline", "no model is available")
	case len(missing) > 0:
		d.add("Model", levelError, "correct models.default in config.yaml", "no extension provides %s",
			strings.Join(missing, " and "))
	case models[0] == offlineModel:
		d.add("Model", levelNote, "`switchboard setup` connects a language model",
			"the offline model answers; it understands only a small fixed grammar")
	default:
		shown := make([]string, len(models))
		for i, m := range models {
			if provider, anyOf := strings.CutSuffix(m, "/*"); anyOf {
				m = "the default model of " + provider
			}
			shown[i] = m
		}
		d.add("Model", levelOK, "", "%s", strings.Join(shown, ", then "))
	}
}

// running checks the state of a running kernel.
func (d *diagnosis) running(s admin.Status, seen *home.Inspection) {
	for _, x := range s.Extensions {
		switch {
		case x.State == "failed" || x.State == "backing_off":
			hint := fmt.Sprintf("`switchboard logs %s` may say more", x.Id)
			if x.State == "failed" {
				hint += fmt.Sprintf("; `switchboard extensions restart %s` starts it again", x.Id)
			}
			f := d.add("Extensions", levelError, hint, "%s is %s: %s", x.Id, strings.ReplaceAll(x.State, "_", " "), x.LastError)
			f.Detail = lastLines(x.Crash, 16)
		case x.State == "inactive" && x.Detail != "":
			d.add("Extensions", levelError, "", "%s does not run: %s", x.Id, x.Detail)
		case x.State != "active" && x.State != stateDisabled && x.State != stateInvalid && x.State != stateNotAllowed:
			d.add("Extensions", levelNote, "", "%s is %s", x.Id, x.State)
		case x.Readiness == "unconfigured":
			d.add("Extensions", levelNote, "", "%s (%s) is not set up: %s", x.Name, x.Id, x.Detail)
		case x.Readiness == "degraded", x.Readiness == "offline" && x.Id != "cli_channel":
			d.add("Extensions", levelError, "", "%s (%s) is %s: %s", x.Name, x.Id, x.Readiness, x.Detail)
		}
	}
	d.models(named(seen, s.Models), func(provider string) bool {
		return slices.ContainsFunc(s.Extensions, func(x *adminv1.Extension) bool {
			return x.Id == provider && slices.Contains(x.Kinds, "models")
		})
	})
	for _, limit := range s.Limits {
		d.add("Model", levelWarning,
			"`switchboard usage` shows what used the tokens (--by agent, model, person or session)", "%s",
			limit)
	}
	newest := "empty"
	if s.LastEvent != "" {
		newest = "newest event " + s.LastEvent
	}
	d.add("Store", levelOK, "", "%s, %s", humanize.IBytes(uint64(s.StoreBytes)), newest) //nolint:gosec // not negative
}

// people checks who waits for approval, and that each budget is that of one person.
func (d *diagnosis) people(s admin.Status, seen *home.Inspection) {
	if s.Strangers > 0 {
		d.add("People", levelNote, "`switchboard pairing list`", "%s for approval", waits(s.Strangers, "person", "people"))
	}
	if seen == nil {
		return
	}
	for _, name := range seen.Budgets {
		n := 0
		for _, p := range s.People {
			if strings.EqualFold(p.GetName(), name) {
				n++
			}
		}
		if n == 1 {
			continue
		}
		why := "no known person has that name"
		if n > 1 {
			why = fmt.Sprintf("%d people have that name", n)
		}
		d.add("People", levelWarning, "`switchboard people list` shows the names",
			"people.%s in config.yaml has no effect: %s",
			name, why)
	}
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (d *diagnosis) deadLetters(ctx context.Context, k *admin.Client, s admin.Status) {
	if s.DeadLetters == 0 {
		d.add("Store", levelOK, "", "no dead letters")
		return
	}
	f := d.add("Store", levelWarning, "`switchboard events dead` lists them, `switchboard events resubmit ID` tries one "+
		"again", "%s", count(s.DeadLetters, "dead letter"))
	newest, err := readDeadLetters(ctx, k, 3)
	if err != nil {
		return
	}
	var lines []string
	for _, one := range slices.Backward(newest) {
		lines = append(lines, fmt.Sprintf("%s %s: %s", one.Event, one.Topic, shorten(one.Reason, 100)))
	}
	f.Detail = strings.Join(lines, "\n")
}
