package service

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Launchd installs an agent, for one user, or a daemon, for the system.
type Launchd struct {
	System bool
	UID    int    // of an agent: whose
	Dir    string // of property lists
	Logs   string // directory of the output
	Run    Run
	Wait   func(ctx context.Context, d time.Duration) // between attempts
}

// label identifies the service for launchd.
const label = "run.switchboard." + Name

// File implements Manager.
func (l Launchd) File() string { return filepath.Join(l.Dir, label+".plist") }

func (l Launchd) log() string { return filepath.Join(l.Logs, Name+".log") }

// Define implements Manager.
func (l Launchd) Define(s Service) (string, error) {
	if err := s.check(); err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		for i, a := range args {
			args[i] = escaped(fmt.Sprint(a))
		}
		fmt.Fprintf(&b, strings.Repeat("\t", depth)+format+"\n", args...)
	}
	line(0, `<?xml version="1.0" encoding="UTF-8"?>`)
	line(0, `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">`)
	line(0, "<!-- %s -->", strings.ReplaceAll(note(s), "--", "- -")) // which a comment cannot contain
	line(0, `<plist version="1.0">`)
	line(0, "<dict>")
	text := func(key, value string) { line(1, "<key>%s</key>\n\t<string>%s</string>", key, value) }
	text("Label", label)
	line(1, "<key>ProgramArguments</key>\n\t<array>")
	line(2, "<string>%s</string>\n\t\t<string>run</string>", s.Program)
	line(1, "</array>")
	line(1, "<key>EnvironmentVariables</key>\n\t<dict>")
	for _, v := range s.environ() {
		name, value, _ := strings.Cut(v, "=")
		line(2, "<key>%s</key>\n\t\t<string>%s</string>", name, value)
	}
	line(1, "</dict>")
	if l.System {
		text("UserName", s.User)
	}
	line(1, "<key>RunAtLoad</key>\n\t<true/>")
	line(1, "<key>KeepAlive</key>\n\t<true/>")
	line(1, "<key>ThrottleInterval</key>\n\t<integer>10</integer>")
	line(1, "<key>ExitTimeOut</key>\n\t<integer>45</integer>")
	line(1, "<key>Umask</key>\n\t<integer>%s</integer>", 0o077)
	text("StandardOutPath", l.log())
	text("StandardErrorPath", l.log())
	line(0, "</dict>\n</plist>")
	return b.String(), nil
}

func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a Buffer takes everything
	return b.String()
}

// domain is where the service runs: the system, or the user's graphical login, if there is one.
func (l Launchd) domain(ctx context.Context) string {
	if l.System {
		return "system"
	}
	gui := "gui/" + strconv.Itoa(l.UID)
	if _, err := l.Run(ctx, "launchctl", "print", gui); err != nil {
		return "user/" + strconv.Itoa(l.UID)
	}
	return gui
}

// Reachable implements Manager.
func (l Launchd) Reachable(ctx context.Context) error {
	if _, err := l.Run(ctx, "launchctl", "print", l.domain(ctx)); err != nil {
		return fmt.Errorf("launchd doesn't answer: %w", err)
	}
	return nil
}

// stoppingTime bounds the wait for a service that was told to stop.
const stoppingTime = time.Minute

// Start implements Manager.
func (l Launchd) Start(ctx context.Context) error {
	if err := l.Stop(ctx); err != nil {
		return err
	}
	domain := l.domain(ctx)
	if _, err := l.Run(ctx, "launchctl", "enable", domain+"/"+label); err != nil {
		return err
	}
	_, err := l.Run(ctx, "launchctl", "bootstrap", domain, l.File())
	return err
}

// Stop implements Manager.
func (l Launchd) Stop(ctx context.Context) error {
	target := l.domain(ctx) + "/" + label
	loaded := func() bool {
		_, err := l.Run(ctx, "launchctl", "print", target)
		return err == nil
	}
	if !loaded() {
		return nil
	}
	if _, err := l.Run(ctx, "launchctl", "bootout", target); err != nil && !strings.Contains(err.Error(), "in progress") {
		return err
	}
	const pause = 200 * time.Millisecond
	for waited := time.Duration(0); loaded(); waited += pause { // bootout may return before the process has ended
		if waited >= stoppingTime || ctx.Err() != nil {
			return errors.New("the service doesn't stop; `switchboard logs kernel` may say why")
		}
		l.Wait(ctx, pause)
	}
	return nil
}

// Forget implements Manager.
func (l Launchd) Forget(context.Context) error { return nil }

// State implements Manager.
func (l Launchd) State(ctx context.Context) (State, error) {
	s := State{File: l.File(), Starts: Login, State: "not loaded"}
	if l.System {
		s.Starts = Boot
	}
	if err := l.Reachable(ctx); err != nil {
		return s, err
	}
	text, err := l.Run(ctx, "launchctl", "print", l.domain(ctx)+"/"+label)
	if err != nil {
		return s, nil //nolint:nilerr // it is not loaded
	}
	s.Installed, s.Enabled = true, true
	fields := regexp.MustCompile(`(?m)^\s*(state|pid) = (.+)$`).FindAllStringSubmatch(text, -1)
	slices.Reverse(fields) // the first of each name is the service's own
	for _, f := range fields {
		if f[1] == "state" {
			s.State = strings.TrimSpace(f[2])
		} else {
			s.PID, _ = strconv.Atoi(strings.TrimSpace(f[2]))
		}
	}
	s.Running = s.State == "running"
	return s, nil
}

// LogCommand implements Manager.
func (l Launchd) LogCommand() string { return "tail -f " + l.log() }
