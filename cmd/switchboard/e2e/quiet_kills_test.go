package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// night is a world with a clock that can be set, in which two people sleep: Clara for four
// hours, Boris for eight.
type night struct {
	*world
	deaths int // of kernels that killed themselves
}

const (
	reminded  = "⏰ From Anna: bring salt to "
	scheduler = "scheduler:scheduler" // in the command line of its process
)

func newNight(t *testing.T) *night {
	t.Helper()
	w := &night{world: newWorld(t, strangers(), withModel)}
	w.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d", "%d", "%d"]}}`, anna, boris, clara))
	w.config("processes: separate\n" + w.text("config.yaml"))
	w.program, w.env[shiftVariable], w.env["SWITCHBOARD_CRASH_OFTEN"] = "shifted", w.file("clock"), "1"
	w.setClock(0)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		to, ok := strings.CutPrefix(r.Last("user"), "remind ")
		if ok && len(r.Results()) == 0 {
			return openaitest.CallTool("scheduler__schedule_once",
				map[string]any{"message": "bring salt to " + to, "delay_seconds": 1, "person": to})
		}
		return echo(r)
	})
	w.start()
	w.telegramReady()
	w.says(anna, "Anna", "hello")
	sleeps := func(user int64, name string, hours time.Duration) {
		w.says(user, name, "/timezone UTC")
		now := time.Now().UTC()
		said := w.says(user, name, fmt.Sprintf("/quiet %s-%s", now.Add(-time.Hour).Format("15:04"),
			now.Add(hours*time.Hour).Format("15:04")))
		contains(t, "the answer to /quiet", said, "Your quiet hours are")
	}
	sleeps(boris, "Boris", 8)
	sleeps(clara, "Clara", 4)
	return w
}

// reminders are those that a person has.
func (w *night) reminders(user int64) (all []string) {
	for _, text := range w.texts(user) {
		if strings.Contains(text, "bring salt") {
			all = append(all, text)
		}
	}
	return all
}

// asks has Anna write, and waits until she is answered.
func (w *night) asks(text string) {
	w.t.Helper()
	n := len(w.texts(anna))
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: anna, FirstName: "Anna"}, Text: text})
	w.reaches("an answer to "+text, func() bool { return len(w.texts(anna)) > n })
}

// held waits until n reminders wait for their people to wake.
func (w *night) held(n int) {
	w.t.Helper()
	w.reaches(fmt.Sprint(n, " held reminders"), func() bool {
		return len(w.query(`SELECT key FROM kv WHERE owner = 'kernel' AND key LIKE 'held/%'`)) == n
	})
}

// reaches waits for something, over the death of the kernel if it comes meanwhile.
func (w *night) reaches(what string, done func() bool) {
	w.t.Helper()
	w.eventually(what, func() bool {
		select {
		case <-w.kernel.ended:
			w.deaths++
			w.killedAt("", "", "")
			w.launch()
		default:
		}
		return done()
	})
}

// killedAt says where the next kernel, or an extension of it, is killed; empty: nowhere.
func (w *night) killedAt(point, from, victim string) {
	w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"], w.env["SWITCHBOARD_CRASH_VICTIM"] = point, from, victim
	w.env["SWITCHBOARD_CRASH_TRACE"] = ""
	if point != "" {
		w.env["SWITCHBOARD_CRASH_TRACE"] = w.file("trace")
	}
}

func (w *night) killsScheduler() {
	w.t.Helper()
	w.reaches("a scheduler to kill", func() bool {
		for _, p := range descendants(w.t, w.kernel.pid()) {
			if strings.Contains(p.command, scheduler) {
				return syscall.Kill(p.pid, syscall.SIGKILL) == nil
			}
		}
		return false
	})
}

// came fails unless a person has the reminder once, or again with a mark if that may be.
func (w *night) came(user int64, name string, again bool) {
	w.t.Helper()
	const mark = "(possibly sent before) "
	for i, text := range w.reminders(user) {
		unmarked, marked := strings.CutPrefix(text, mark)
		if late := strings.Index(unmarked, " (late: "); late > 0 { // it fired after the kill
			unmarked = unmarked[:late]
		}
		if unmarked != reminded+name || marked && !again || i > 0 && !marked {
			w.t.Errorf("%s is shown %q", name, w.reminders(user))
		}
	}
}

// A reminder for a person who sleeps comes once, when their quiet hours end and not before,
// wherever the kernel or an extension is killed: when it is held, while it waits, and when it
// is sent.
func TestReminderWaitsForTheEndOfQuietHoursOverKills(t *testing.T) {
	if raceDetector {
		t.Skip("what it builds has no race detector")
	}
	t.Parallel()
	if err := buildShifted(); err != nil {
		t.Fatal(err)
	}
	type kill struct{ point, from, victim string }
	const whenHeld, whenSent = "system.user.notify", "channel.send.telegram_channel"
	kills := []kill{{}}
	for _, victim := range []string{"", scheduler} {
		for _, point := range points(t, 1) {
			kills = append(kills, kill{point, whenHeld, victim})
		}
	}
	for _, victim := range []string{"", "telegram_channel"} {
		for _, point := range points(t, 2) {
			kills = append(kills, kill{point, whenSent, victim})
		}
	}
	for _, k := range kills {
		t.Run(strings.TrimSpace(fmt.Sprintf("waits %s %s %s", k.victim, k.point, k.from)), func(t *testing.T) {
			t.Parallel()
			w := newNight(t)
			if k.from == whenHeld {
				w.killedAt(k.point, k.from, k.victim)
				w.restart()
				w.telegramReady()
			}
			w.asks("remind Boris")
			w.held(1)
			w.killsScheduler()
			w.asks("remind Clara")
			w.held(2)
			if k.from == whenSent {
				w.killedAt(k.point, k.from, k.victim)
			}
			w.restart()
			w.setClock(6 * time.Hour)
			w.reaches("the reminder of Clara, who wakes first", func() bool { return len(w.reminders(clara)) > 0 })
			w.reaches("its settlement", func() bool { return len(w.pending()) == 0 })
			if got := w.reminders(boris); len(got) != 0 {
				t.Errorf("in his quiet hours, boris is shown %q", got)
			}
			w.reaches("the kill", func() bool {
				return k.point == "" || w.deaths > 0 || k.victim != "" && strings.Contains(w.text("trace"), "killed ")
			})
			w.restart()
			w.setClock(10 * time.Hour)
			w.reaches("the reminder of Boris", func() bool { return len(w.reminders(boris)) > 0 })
			w.reaches("the end", func() bool { return len(w.pending()) == 0 })
			w.held(0)
			w.came(clara, "Clara", k.from == whenSent)
			w.came(boris, "Boris", k.from == whenSent)
			if got := strings.Join(w.texts(anna), "\n"); strings.Contains(got, "⏰") {
				t.Errorf("anna is shown %q", got)
			}
			if dead := w.dead(); len(dead) > 0 {
				t.Errorf("given up: %q", dead)
			}
		})
	}
}
