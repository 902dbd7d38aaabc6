package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakeInit is the environment variable with the directory in which the fakes of systemctl
// and loginctl keep what systemd would know. It is made for scripts only.
const fakeInit = "FAKE_INIT"

const fakeUnit = "switchboard.service"

// systemd is what the fakes of systemctl and loginctl share, as files of a directory: unit
// (as it was loaded), enabled, lingers, pid. If refuses exists, enable-linger is refused.
type systemd struct{ dir string }

func (d systemd) has(name string) bool {
	_, err := os.Stat(filepath.Join(d.dir, name))
	return err == nil
}

func (d systemd) set(name, value string) {
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(value), 0o600); err != nil {
		fail("%v", err)
	}
}

func (d systemd) get(name string) string {
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fail("%v", err)
	}
	return string(data)
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

// fakeSystemctl takes what `switchboard service` may say, in the form that systemctl takes.
func fakeSystemctl() {
	d := systemd{os.Getenv(fakeInit)}
	if d.dir == "" {
		fail("Failed to connect to bus: No medium found")
	}
	if len(os.Args) < 2 || os.Args[1] != "--user" {
		fail("Access denied")
	}
	switch args := os.Args[2:]; {
	case slices.Equal(args, []string{"show", "--property=Version"}):
		fmt.Println("Version=252")
	case slices.Equal(args, []string{"daemon-reload"}):
		text, err := os.ReadFile(filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "systemd", "user", fakeUnit))
		if err != nil {
			_ = os.Remove(filepath.Join(d.dir, "unit"))
			return
		}
		d.set("unit", string(text))
	case len(args) == 3 && args[0] == "show" && args[1] == fakeUnit && strings.HasPrefix(args[2], "--property="):
		d.show(strings.Split(strings.TrimPrefix(args[2], "--property="), ","))
	case len(args) < 2 || args[len(args)-1] != fakeUnit:
		fail("Unknown command verb %s.", args[0])
	case !d.has("unit"):
		fail("Failed to %s unit: Unit %s not found.", args[0], fakeUnit)
	case slices.Equal(args[:len(args)-1], []string{"enable"}):
		d.set("enabled", "")
	case slices.Equal(args[:len(args)-1], []string{"restart"}):
		d.stop()
		d.start()
	case slices.Equal(args[:len(args)-1], []string{"disable", "--now"}):
		_ = os.Remove(filepath.Join(d.dir, "enabled"))
		d.stop()
	default:
		fail("Unknown command verb %s.", args[0])
	}
}

func (d systemd) show(properties []string) {
	values := map[string]string{"LoadState": "not-found", "ActiveState": "inactive", "SubState": "dead", "MainPID": "0",
		"NRestarts": "0", "UnitFileState": ""}
	if d.has("unit") {
		values["LoadState"], values["UnitFileState"] = "loaded", "disabled"
	}
	if d.has("enabled") {
		values["UnitFileState"] = "enabled"
	}
	if pid := d.pid(); pid > 0 {
		values["ActiveState"], values["SubState"], values["MainPID"] = "active", "running", strconv.Itoa(pid)
	}
	for _, p := range properties {
		value, ok := values[p]
		if !ok {
			fail("Failed to get properties: Unknown property %s", p)
		}
		fmt.Println(p + "=" + value)
	}
}

// pid is that of the running service, or 0.
func (d systemd) pid() int {
	pid, _ := strconv.Atoi(d.get("pid"))
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if pid == 0 || syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ") {
		return 0
	}
	return pid
}

// stop ends the service as a unit with KillMode=mixed asks for.
func (d systemd) stop() {
	for pid := d.pid(); pid > 0 && d.pid() > 0; time.Sleep(10 * time.Millisecond) {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// start runs the loaded unit with no environment but what systemd and the unit give.
func (d systemd) start() {
	me, err := user.Current()
	if err != nil {
		fail("%v", err)
	}
	var words []string
	env := []string{"HOME=" + os.Getenv("HOME"), "USER=" + me.Username, "PATH=/usr/bin:/bin"}
	for line := range strings.Lines(d.get("unit")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "ExecStart":
			words = unitWords(value)
		case "Environment":
			env = append(env, unitWords(value)...)
		}
	}
	if len(words) == 0 {
		fail("Failed to restart %s: Unit has a bad unit file setting.", fakeUnit)
	}
	out, err := os.Create(filepath.Join(d.dir, "output"))
	if err != nil {
		fail("%v", err)
	}
	c := exec.Command(words[0], words[1:]...)
	c.Env, c.Stdout, c.Stderr, c.SysProcAttr = env, out, out, &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		fail("Failed to restart %s: %v", fakeUnit, err)
	}
	d.set("pid", strconv.Itoa(c.Process.Pid))
}

// unitWords splits and unquotes as systemd does, without what `switchboard service` never
// writes.
func unitWords(s string) (words []string) {
	word, quoted, started := "", false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted, started = !quoted, true
		case c == '\\' && i+1 < len(s) && strings.ContainsRune(`\"`, rune(s[i+1])):
			i++
			word += string(s[i])
		case c == '\\':
			fail("unknown escape in %s", s)
		case c == '%' && i+1 < len(s) && s[i+1] == '%':
			i++
			word += "%"
		case c == '%':
			fail("a specifier in %s", s)
		case c == ' ' && !quoted:
			if started {
				words = append(words, word)
			}
			word, started = "", false
		default:
			word, started = word+string(c), true
		}
	}
	if quoted {
		fail("unbalanced quotes in %s", s)
	}
	if started {
		words = append(words, word)
	}
	return words
}

func fakeLoginctl() {
	d := systemd{os.Getenv(fakeInit)}
	me, err := user.Current()
	if err != nil {
		fail("%v", err)
	}
	switch {
	case slices.Equal(os.Args[1:], []string{"show-user", me.Username, "--property=Linger"}):
		if !d.has("lingers") {
			fail("Failed to get user: User ID %s is not logged in or lingering", me.Uid)
		}
		fmt.Println("Linger=yes")
	case !slices.Equal(os.Args[1:], []string{"--no-ask-password", "enable-linger", me.Username}):
		fail("Unknown command verb.")
	case d.has("refuses"):
		fail("Could not enable linger: Interactive authentication required.")
	default:
		d.set("lingers", "")
	}
}

// rebooted plays a restart of the machine: the service ends, and starts if systemd would
// start it without a login.
func rebooted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: rebooted")
	}
	d := systemd{ts.Getenv(fakeInit)}
	d.stop()
	if d.has("enabled") && d.has("lingers") {
		ts.Check(ts.Exec("systemctl", "--user", "restart", fakeUnit))
	}
}

// fakeInitIn gives a script an init system, which ends with the script.
func fakeInitIn(e *testscript.Env) error {
	dir := filepath.Join(e.WorkDir, ".init")
	e.Setenv(fakeInit, dir)
	e.Defer(systemd{dir}.stop)
	return os.Mkdir(dir, 0o700)
}

func TestUnitWords(t *testing.T) {
	t.Parallel()
	got := unitWords(`"/a %% b/\"c\\" run`)
	if want := []string{`/a % b/"c\`, "run"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
