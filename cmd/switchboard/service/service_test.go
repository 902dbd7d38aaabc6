package service

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// odd is a path with what service managers treat specially, as far as systemd takes it.
const odd = "od d % $HOME %h ü;#&<"

func example(t *testing.T) Service {
	t.Helper()
	dir := filepath.Join(t.TempDir(), odd)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "switch board")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return Service{Program: program, Home: dir + `/"ho\me'--`, Environ: []string{"PATH=/bin:/a b"}, User: "root"}
}

func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze")
	}
	for _, system := range []bool{true, false} {
		d := Systemd{System: system, Dir: t.TempDir(), Run: Command("XDG_RUNTIME_DIR=" + t.TempDir())}
		text, err := d.Define(example(t))
		if err == nil {
			err = os.WriteFile(d.File(), []byte(text), 0o600)
		}
		args := []string{"verify", d.File()}
		if !system {
			args = append([]string{"--user"}, args...)
		}
		if err == nil {
			_, err = d.Run(t.Context(), "systemd-analyze", args...)
		}
		if err != nil {
			t.Errorf("system %v: %v\n%s", system, err, text)
		}
	}
}

func TestWhatNoServiceCanExpressIsRefused(t *testing.T) {
	t.Parallel()
	for _, m := range []Manager{Systemd{}, Launchd{}} {
		for name, s := range map[string]Service{
			"a line break": {Program: "/p", Home: "/a\nb"},
			"no text":      {Program: "/p", Home: "/a\xff"},
			"relative":     {Program: "p", Home: "/a"},
		} {
			if text, err := m.Define(s); err == nil {
				t.Errorf("%T takes %s:\n%s", m, name, text)
			}
		}
	}
	if text, err := (Systemd{}).Define(Service{Program: `/a"b`, Home: "/h"}); err == nil {
		t.Errorf("systemd would refuse this program:\n%s", text)
	}
}

// launchctl plays launchd for one user with a graphical login, and refuses what launchctl
// would refuse.
type launchctl struct {
	t        *testing.T
	enabled  bool
	loaded   map[string]any // the property list; nil: none
	stopping int            // how often the service is still there after it was told to stop
	calls    []string
}

func (l *launchctl) run(_ context.Context, name string, args ...string) (string, error) {
	const domain, target = "gui/501", "gui/501/" + label
	call := strings.Join(append([]string{name}, args...), " ")
	l.calls = append(l.calls, call)
	if l.stopping > 0 {
		if l.stopping--; l.stopping == 0 {
			l.loaded = nil
		}
	}
	switch {
	case call == "launchctl print "+domain:
		return "type = login\n", nil
	case call == "launchctl print "+target && l.loaded != nil:
		return target + " = {\n\tactive count = 1\n\tstate = running\n\tpid = 123\n\tspawn = {\n\t\tstate = x\n\t}\n}\n", nil
	case call == "launchctl enable "+target:
		l.enabled = true
		return "", nil
	case call == "launchctl bootout "+target && l.loaded != nil:
		l.stopping = 3
		return "", errors.New("Boot-out failed: 36: Operation now in progress")
	case len(args) == 3 && strings.HasPrefix(call, "launchctl bootstrap "+domain+" ") && l.loaded == nil && l.enabled:
		data, err := os.ReadFile(args[2])
		if err != nil {
			return "", err
		}
		l.loaded = plist(l.t, data)
		return "", nil
	}
	return "", errors.New(call + ": failed: 5: Input/output error")
}

// plist reads a property list.
func plist(t *testing.T, data []byte) map[string]any {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(data)))
	var value func(start xml.StartElement) any
	value = func(start xml.StartElement) any {
		var text string
		key, dict, array := "", map[string]any{}, []any{}
		for {
			token, err := d.Token()
			if err != nil {
				t.Fatalf("the property list is damaged: %v\n%s", err, data)
			}
			switch x := token.(type) {
			case xml.CharData:
				text += string(x)
			case xml.StartElement:
				v := value(x)
				if x.Name.Local == "key" {
					key = v.(string)
				} else {
					dict[key], array = v, append(array, v)
				}
			case xml.EndElement:
				switch start.Name.Local {
				case "dict":
					return dict
				case "array":
					return array
				case "true":
					return true
				case "plist":
					return array[0]
				}
				return text
			}
		}
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			t.Fatalf("no property list:\n%s", data)
		}
		if err != nil {
			t.Fatalf("the property list is damaged: %v\n%s", err, data)
		}
		if start, ok := token.(xml.StartElement); ok {
			return value(start).(map[string]any)
		}
	}
}

func TestLaunchdRunsTheAgent(t *testing.T) {
	t.Parallel()
	fake := &launchctl{t: t}
	l := Launchd{UID: 501, Dir: filepath.Join(t.TempDir(), "LaunchAgents"), Logs: "/logs", Run: fake.run,
		Wait: func(context.Context, time.Duration) {}}
	s := example(t)
	ctx := t.Context()
	install := func(want bool) {
		t.Helper()
		if changed, err := Install(ctx, l, s); err != nil || changed != want {
			t.Fatalf("Install: %v, %v; want %v", changed, err, want)
		}
		if arguments, _ := fake.loaded["ProgramArguments"].([]any); !slices.Equal(arguments, []any{s.Program, "run"}) {
			t.Errorf("launchd runs %q, want %q", arguments, s.Program)
		}
		env, _ := fake.loaded["EnvironmentVariables"].(map[string]any)
		if env["SWITCHBOARD_HOME"] != s.Home || env["PATH"] != "/bin:/a b" {
			t.Errorf("its environment is %q", env)
		}
		if fake.loaded["KeepAlive"] != true || fake.loaded["RunAtLoad"] != true || fake.loaded["Umask"] != "63" {
			t.Errorf("it has %v", fake.loaded)
		}
	}
	install(true)
	install(false)
	s.Program += " 2"
	install(true) // which has to wait until the old one has ended
	if state, err := l.State(ctx); err != nil || !state.Running || state.PID != 123 || state.Starts != Login {
		t.Errorf("its state is %+v, %v", state, err)
	}
	for _, want := range []bool{true, false} {
		if removed, err := Uninstall(ctx, l); err != nil || removed != want {
			t.Errorf("Uninstall: %v, %v; want %v", removed, err, want)
		}
	}
	if state, err := l.State(ctx); err != nil || state.Installed || fake.loaded != nil {
		t.Errorf("after its end: %+v, %v", state, err)
	}
}

func TestDaemonsOfLaunchdHaveAUser(t *testing.T) {
	t.Parallel()
	text, err := Launchd{System: true, Logs: "/logs"}.Define(Service{Program: "/p", Home: "/h", User: "a&b"})
	if err != nil {
		t.Fatal(err)
	}
	if got := plist(t, []byte(text))["UserName"]; got != "a&b" {
		t.Errorf("it runs as %v", got)
	}
}

func TestOtherServicesStay(t *testing.T) {
	t.Parallel()
	fake := &launchctl{t: t}
	l := Launchd{UID: 501, Dir: t.TempDir(), Run: fake.run}
	if err := os.WriteFile(l.File(), []byte("<plist/>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), l, example(t)); err == nil {
		t.Error("a file that somebody else wrote is replaced")
	}
	if _, err := Uninstall(t.Context(), l); err == nil {
		t.Error("a file that somebody else wrote is removed")
	}
	text, err := l.Define(Service{Program: "/p", Home: "/another"})
	if err == nil {
		err = os.WriteFile(l.File(), []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), l, example(t)); err == nil {
		t.Error("the service of another home is replaced")
	}
	if fake.loaded != nil || slices.ContainsFunc(fake.calls, func(c string) bool { return strings.Contains(c, "boot") }) {
		t.Errorf("launchd was told %q", fake.calls)
	}
}
