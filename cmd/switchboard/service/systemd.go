package service

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Systemd installs a unit, for one user or for the system.
type Systemd struct {
	System bool
	User   string // of a user unit: whose
	Dir    string // of units
	Run    Run
}

const unit = Name + ".service"

// File implements Manager.
func (d Systemd) File() string { return filepath.Join(d.Dir, unit) }

// Define implements Manager.
func (d Systemd) Define(s Service) (string, error) {
	if err := s.check(); err != nil {
		return "", err
	}
	if strings.ContainsAny(s.Program, `"'\`+"`") {
		return "", fmt.Errorf("systemd can't start %s: move it to a path without quotes and backslashes", s.Program)
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# %s", note(s))
	line("[Unit]")
	line("Description=Switchboard, a personal assistant")
	if d.System { // the service manager of a user knows no network
		line("Wants=network-online.target")
		line("After=network-online.target")
	}
	// It is tried for good: a file that is corrected, or a kernel in a terminal that ends,
	// needs no command.
	line("StartLimitIntervalSec=0")
	line("\n[Service]")
	line("Type=exec")
	line("ExecStart=%s run", quoted(s.Program))
	for _, v := range s.environ() {
		line("Environment=%s", quoted(v))
	}
	if d.System {
		line("User=%s", strings.ReplaceAll(s.User, "%", "%%"))
	}
	line("Restart=always")
	line("RestartSec=10s")
	line("KillMode=mixed") // the kernel stops its extensions
	line("TimeoutStopSec=45s")
	line("UMask=0077")
	line("SyslogIdentifier=%s", Name)
	line("\n[Install]")
	if d.System {
		line("WantedBy=multi-user.target")
	} else {
		line("WantedBy=default.target")
	}
	return b.String(), nil
}

// quoted quotes a word of a unit: systemd expands % in it, and backslashes.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(s) + `"`
}

func (d Systemd) systemctl(ctx context.Context, args ...string) (string, error) {
	if !d.System {
		args = append([]string{"--user"}, args...)
	}
	return d.Run(ctx, "systemctl", args...)
}

// Reachable implements Manager.
func (d Systemd) Reachable(ctx context.Context) error {
	_, err := d.systemctl(ctx, "show", "--property=Version")
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("there is no systemd here: start `switchboard run` from your init system or container runtime")
	case err == nil:
		return nil
	case d.System:
		return fmt.Errorf("systemd doesn't run here: start `switchboard run` from your init system or container runtime: %w",
			err)
	}
	return fmt.Errorf("systemd doesn't answer %s: log in directly (not with su), or install a service of the system with "+
		"sudo; in a container, start `switchboard run` from the container runtime: %w", d.User, err)
}

// Start implements Manager.
func (d Systemd) Start(ctx context.Context) error {
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unit}, {"restart", unit}} {
		if _, err := d.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Stop implements Manager.
func (d Systemd) Stop(ctx context.Context) error {
	_, err := d.systemctl(ctx, "disable", "--now", unit)
	return err
}

// Forget implements Manager.
func (d Systemd) Forget(ctx context.Context) error {
	_, err := d.systemctl(ctx, "daemon-reload")
	return err
}

// State implements Manager.
func (d Systemd) State(ctx context.Context) (State, error) {
	text, err := d.systemctl(ctx, "show", unit,
		"--property=LoadState,ActiveState,SubState,UnitFileState,MainPID,NRestarts")
	if err != nil {
		return State{}, err
	}
	p := properties(text)
	s := State{
		Installed: p["LoadState"] != "not-found", File: d.File(), Starts: Boot, Enabled: p["UnitFileState"] == "enabled",
		Running: p["ActiveState"] == "active", State: p["ActiveState"] + " (" + p["SubState"] + ")",
	}
	s.PID, _ = strconv.Atoi(p["MainPID"])
	s.Restarts, _ = strconv.Atoi(p["NRestarts"])
	if !d.System && !d.Lingers(ctx) {
		s.Starts = Login
	}
	return s, nil
}

// Lingers reports whether the user's services run without a login.
func (d Systemd) Lingers(ctx context.Context) bool {
	text, err := d.Run(ctx, "loginctl", "show-user", d.User, "--property=Linger")
	return err == nil && properties(text)["Linger"] == "yes" // an error: neither logged in nor lingering
}

// Linger has the user's services run without a login.
func (d Systemd) Linger(ctx context.Context) error {
	_, err := d.Run(ctx, "loginctl", "--no-ask-password", "enable-linger", d.User)
	return err
}

// LogCommand implements Manager.
func (d Systemd) LogCommand() string {
	if d.System {
		return "journalctl -u " + Name
	}
	return "journalctl --user -u " + Name
}
