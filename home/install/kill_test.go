package install

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/home/config"
)

// Steps of an installation before which a process can be killed.
var killSteps = []string{"fetch", "check", "record", "sync", "swap", "between", "done"}

const (
	killAtEnv   = "TEST_INSTALL_KILL_AT"
	killHomeEnv = "TEST_INSTALL_HOME"
	killFromEnv = "TEST_INSTALL_FROM"
	killTwoEnv  = "TEST_INSTALL_TWO_STEPS"
)

// TestInstallInAProcess is not a test of its own: it installs, and kills itself at a step.
func TestInstallInAProcess(t *testing.T) {
	t.Parallel()
	at := os.Getenv(killAtEnv)
	if at == "" {
		t.Skip("TestKills starts it")
	}
	h, err := config.OpenHomeAt(os.Getenv(killHomeEnv))
	if err != nil {
		t.Fatal(err)
	}
	i := open(t, h, func(o *Options) {
		o.noExchange = os.Getenv(killTwoEnv) != ""
		o.step = func(step string) {
			if step == at {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
	})
	if os.Getenv(killFromEnv) == "" {
		_, _ = i.Remove(t.Context(), "jotter")
		return
	}
	if _, err := put(t, i, os.Getenv(killFromEnv), ""); err != nil {
		t.Fatal(err)
	}
}

// TestKills kills an installation, an update and a removal at each step: the home has the
// old version or the new one, whole, and the next one succeeds.
func TestKills(t *testing.T) {
	t.Parallel()
	one, two := extension("jotter", "1.0.0").dir(t), extension("jotter", "2.0.0").dir(t)
	for _, c := range []struct {
		name           string
		before, source string
		twoSteps       string
		steps          []string
	}{
		{"new", "", two, "", killSteps},
		{"exchanged", one, two, "", killSteps},
		{"in two steps", one, two, "1", killSteps},
		{"removed", one, "", "", []string{"remove", "removed"}},
	} {
		for _, at := range c.steps {
			t.Run(c.name+" "+at, func(t *testing.T) {
				t.Parallel()
				h := newHome(t)
				if c.before != "" {
					i := open(t, h)
					if _, err := put(t, i, c.before, ""); err != nil {
						t.Fatal(err)
					}
					if err := i.Close(); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInstallInAProcess$")
				cmd.Env = append(os.Environ(), killAtEnv+"="+at, killHomeEnv+"="+h.Path(), killFromEnv+"="+c.source,
					killTwoEnv+"="+c.twoSteps)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() //nolint:forcetypeassert // on Unix
				if never := at == "between" && c.twoSteps == ""; killed == never {
					t.Fatalf("killed: %v, %v\n%s", killed, err, out)
				}
				if err := Recover(h); err != nil {
					t.Fatal(err)
				}
				x, err := Read(t.Context(), h, "jotter")
				whole := err == nil && !x.Changed && x.Record != nil && x.Record.Version == x.Manifest.Version
				if absent := c.before == "" || c.source == ""; !whole && (!absent || !errors.Is(err, ErrNotInstalled)) {
					t.Fatalf("after the kill: %+v, %v", x, err)
				}
				if whole {
					nothingLeft(t, h, "jotter")
					if got := read(t, h.Extensions(), "jotter", "lib/deep/a.txt"); got != x.Manifest.Version {
						t.Errorf("version %s has files of %s", x.Manifest.Version, got)
					}
				} else {
					nothingLeft(t, h)
				}
				if at == "done" && (!whole || x.Manifest.Version != "2.0.0") {
					t.Errorf("after the last step: %+v", x)
				}
				if _, err := put(t, open(t, h), two, ""); err != nil {
					t.Errorf("afterwards: %v", err)
				}
				if got := read(t, h.Extensions(), "jotter", "lib/deep/a.txt"); got != "2.0.0" {
					t.Errorf("afterwards: %s", got)
				}
				nothingLeft(t, h, "jotter")
			})
		}
	}
}
