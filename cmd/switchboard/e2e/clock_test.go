package e2e

import (
	native "encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// shiftVariable names the file with the seconds by which the clock of a process
// is set; its prefix is one of those that extensions get, too.
const shiftVariable = "XDG_SHIFTED_CLOCK"

// shiftSource is added to package time of the program.
const shiftSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var shiftedBy = new(int64)

func init() {
	path, _ := syscall.Getenv("` + shiftVariable + `")
	if path == "" {
		return
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	b, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	_ = syscall.Close(fd)
	shiftedBy = (*int64)(unsafe.Pointer(&b[0]))
}

func shift() int64 { return atomic.LoadInt64(shiftedBy) }
`

// buildShifted builds the program with a wall clock that can be set. The steady
// clock of the process continues evenly, as it does when a person sets the clock of
// a machine.
var buildShifted = sync.OnceValue(func() error {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	dir := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time")
	source, err := os.ReadFile(filepath.Join(dir, "time.go"))
	if err != nil {
		return err
	}
	const before = "sec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(source), before, before+"\tsec += shift()\n", 1)
	if changed == string(source) {
		return fmt.Errorf("package time of %s does not read its clock as it did", runtime.Version())
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "shift.go": shiftSource} {
		replace[filepath.Join(dir, name)] = filepath.Join(built, name)
		if err := os.WriteFile(filepath.Join(built, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(built, "overlay.json"), overlay, 0o600); err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(built, "overlay.json"), "-tags", "crashpoints",
		"-o", binary("shifted"), "github.com/switchboard-run/switchboard/cmd/switchboard").CombinedOutput()
	if err != nil {
		return fmt.Errorf("building with a clock that can be set: %w: %s", err, out)
	}
	return nil
})

// setClock sets the wall clock of the kernel and its extensions, against that of
// the machine.
func (w *world) setClock(by time.Duration) {
	w.t.Helper()
	f, err := os.OpenFile(w.env[shiftVariable], os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(secondsOf(by), 0); err != nil {
		w.t.Fatal(err)
	}
}

func secondsOf(d time.Duration) []byte {
	return native.NativeEndian.AppendUint64(nil, uint64(d/time.Second)) //nolint:gosec // its sign survives
}

// TestClockThatIsSet sets the clock of the machine forward and back
// while a model answers, a reply is to be tried again, and reminders are due.
// Nothing is given up, lost or done twice, and what waits for hours of the clock
// comes when the clock shows them.
func TestClockThatIsSet(t *testing.T) {
	if raceDetector {
		t.Skip("what it builds has no race detector")
	}
	t.Parallel()
	if err := buildShifted(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		by   time.Duration
	}{{"forward", 5 * time.Hour}, {"back", -5 * time.Hour}, {"forward by years", 20 * 365 * 24 * time.Hour},
		{"back by years", -20 * 365 * 24 * time.Hour}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), withModel)
			w.program = "shifted"
			w.env[shiftVariable] = w.file("clock")
			w.setClock(0)
			gate := make(chan struct{})
			w.model.Handle(func(r openaitest.Request) openaitest.Answer {
				text := r.Last("user")
				if strings.Contains(text, "remind") && len(r.Results()) == 0 {
					seconds := 2 * 60 * 60
					if strings.Contains(text, "soon") {
						seconds = 1
					}
					return openaitest.CallTool("scheduler__schedule_once",
						map[string]any{"message": strings.Replace(text, "remind", "Reminder", 1), "delay_seconds": seconds})
				}
				a := echo(r)
				if strings.Contains(text, "<held>") {
					a.Gate = gate
				}
				return a
			})
			w.start()
			w.telegramReady()
			reminders := func(chat int64) (all []string) {
				for _, text := range w.texts(chat) {
					if strings.Contains(text, "Reminder") {
						all = append(all, text)
					}
				}
				return all
			}
			answered := func(chat int64, token string) func() bool {
				return func() bool {
					return slices.ContainsFunc(w.texts(chat), func(text string) bool {
						return strings.HasPrefix(text, "You said ") && strings.Contains(text, token)
					})
				}
			}
			w.telegram.Say(anna, "remind in two hours <hours>")
			w.eventually("a reminder", answered(anna, "<hours>"))
			w.telegram.Say(anna, "<held>")
			w.eventually("a turn that waits", func() bool { return strings.Contains(w.lastRequest(), "<held>") })
			w.telegram.Fail("sendMessage", 1, telegramtest.Fault{Chat: boris, Status: 429, RetryAfter: 2})
			refused := len(w.telegram.Refused())
			w.telegram.Say(boris, "<retried>")
			if _, err := w.telegram.WaitRefused(w.ctx(), refused+1); err != nil {
				t.Fatal(err)
			}

			w.setClock(tt.by)
			w.eventually("the reply that is tried again", answered(boris, "<retried>"))
			if tt.by > 0 {
				w.eventually("the reminder whose hour it is", func() bool { return len(reminders(anna)) > 0 })
			}
			w.telegram.Say(boris, "remind soon <soon>")
			w.eventually("a reminder by the new clock", func() bool { return len(reminders(boris)) > 0 })
			close(gate)
			w.eventually("the turn that was held", answered(anna, "<held>"))

			w.setClock(0)
			w.telegram.Say(boris, "remind soon <again>")
			w.eventually("a reminder by the old clock", func() bool { return len(reminders(boris)) > 1 })
			w.telegram.Say(anna, "<end>")
			w.eventually("the last reply", answered(anna, "<end>"))
			w.settled()
			for chat, want := range map[int64]int{anna: 3, boris: 3} {
				if n := len(w.texts(chat)) - len(reminders(chat)); n != want {
					t.Errorf("chat %d has %d replies: %q", chat, n, w.texts(chat))
				}
			}
			want := 0
			if tt.by > 0 {
				want = 1
			}
			if n := len(reminders(anna)); n != want || len(reminders(boris)) != 2 {
				t.Errorf("the reminders are %q and %q", reminders(anna), reminders(boris))
			}
			if dead := w.dead(); len(dead) > 0 {
				t.Errorf("dead letters: %q", dead)
			}
		})
	}
}

// lastRequest is what a person said last to the model.
func (w *world) lastRequest() string {
	all := w.model.Requests()
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1].Last("user")
}
