// Package service installs Switchboard as a service: of systemd on Linux, of launchd on macOS.
//
// Installing writes one file, the definition, and has the service manager start it now and
// after each boot (or login). Installing again updates it; nothing happens if it is current
// and runs. A definition that this package did not write, or one for another home, is never
// replaced or removed.
package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Name is the name of the service.
const Name = "switchboard"

// marker identifies definitions of this package.
const marker = "Written by `switchboard service install`"

// homeEnv is the environment variable with the home.
const homeEnv = "SWITCHBOARD_HOME"

// Service is what to run.
type Service struct {
	Program string   // absolute path
	Home    string   // absolute path
	Environ []string // NAME=value, in addition to the home
	User    string   // of a system service: who it runs as
}

// check refuses what a definition cannot express.
func (s Service) check() error {
	for _, v := range append([]string{s.Program, homeEnv + "=" + s.Home}, s.Environ...) {
		if !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
			return fmt.Errorf("%q contains characters that a service can't have: choose another path or value", v)
		}
	}
	for _, path := range []string{s.Program, s.Home} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s is not an absolute path", path)
		}
	}
	return nil
}

// environ returns the environment with the home.
func (s Service) environ() []string { return append([]string{homeEnv + "=" + s.Home}, s.Environ...) }

// State is what the service manager reports.
type State struct {
	Installed bool   `json:"installed"`
	File      string `json:"file"`
	Enabled   bool   `json:"enabled"`  // starts by itself, at the time in Starts
	Starts    string `json:"starts"`   // Boot or Login
	Running   bool   `json:"running"`  //
	State     string `json:"state"`    // in the words of the service manager
	PID       int    `json:"pid"`      // 0: none
	Restarts  int    `json:"restarts"` // since it was started; 0 if unknown
}

// When a service starts by itself.
const (
	Boot  = "boot"
	Login = "login"
)

// Manager is a service manager. Its methods other than File and Define use its command.
type Manager interface {
	File() string                        // path of the definition
	Define(s Service) (string, error)    // the definition
	Reachable(ctx context.Context) error // nil: the service manager answers
	Start(ctx context.Context) error     // loads the definition, starts it now and from now on
	Stop(ctx context.Context) error      // ends what runs, and starts it no more
	Forget(ctx context.Context) error    // after the definition was removed
	State(ctx context.Context) (State, error)
	LogCommand() string // shows the output of the service
}

// Install writes the definition and starts the service. It reports whether anything
// changed.
func Install(ctx context.Context, m Manager, s Service) (changed bool, err error) {
	text, err := m.Define(s)
	if err != nil {
		return false, err
	}
	if err := m.Reachable(ctx); err != nil {
		return false, err
	}
	old, err := os.ReadFile(m.File())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, fmt.Errorf("read the installed service: %w", err)
	case !bytes.Contains(old, []byte(marker)):
		return false, foreign(m.File())
	case homeOf(string(old)) != homeOf(text):
		return false, fmt.Errorf("%s is for another home: `switchboard service uninstall` removes it", m.File())
	}
	if string(old) == text {
		if now, err := m.State(ctx); err == nil && now.Running && now.Enabled {
			return false, nil
		}
	} else if err := write(m.File(), text); err != nil {
		return false, fmt.Errorf("install the service: %w", err)
	}
	return true, m.Start(ctx)
}

// Uninstall stops the service and removes the definition. It reports whether there was one.
func Uninstall(ctx context.Context, m Manager) (bool, error) {
	text, err := os.ReadFile(m.File())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the installed service: %w", err)
	case !bytes.Contains(text, []byte(marker)):
		return false, foreign(m.File())
	}
	if err := m.Reachable(ctx); err != nil {
		return false, err
	}
	if err := m.Stop(ctx); err != nil {
		return false, err
	}
	if err := os.Remove(m.File()); err != nil {
		return false, fmt.Errorf("remove the service: %w", err)
	}
	return true, m.Forget(ctx)
}

func foreign(file string) error {
	return fmt.Errorf("%s wasn't written by `switchboard service install`: move it away, or keep using it", file)
}

// homeOf returns the comment of a definition that names its home.
func homeOf(definition string) string {
	_, rest, _ := strings.Cut(definition, marker)
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// note is the comment in a definition. It names the home for homeOf.
func note(s Service) string {
	return fmt.Sprintf("%s for the home %q. Run that again to change it.", marker, s.Home)
}

// write replaces a file as a whole.
func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Run executes a command of the system and returns its output.
type Run func(ctx context.Context, name string, args ...string) (string, error)

// Command is the Run that executes programs. It adds env to the environment.
func Command(env ...string) Run {
	return func(ctx context.Context, name string, args ...string) (string, error) {
		c := exec.CommandContext(ctx, name, args...)
		c.Env = append(os.Environ(), env...)
		var out, complaint bytes.Buffer
		c.Stdout, c.Stderr = &out, &complaint
		err := c.Run()
		if said := strings.TrimSpace(complaint.String()); err != nil && said != "" {
			err = errors.New(said)
		}
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
		}
		return out.String(), nil
	}
}

// properties parses lines of NAME=value.
func properties(text string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			found[name] = value
		}
	}
	return found
}
