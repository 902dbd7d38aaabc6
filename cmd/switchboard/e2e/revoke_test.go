package e2e

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// Revoking a person ends what they set up and says so. Nothing more is said to them, and
// no model runs for them, wherever the kernel is killed meanwhile.
func TestRevokingEndsWhatThePersonSetUp(t *testing.T) {
	t.Parallel()
	for _, crash := range []string{"", "before 1", "after 1", "after 2", "after 3"} {
		t.Run("crash "+crash, func(t *testing.T) {
			t.Parallel()
			revokesWithCrash(t, crash)
		})
	}
}

func revokesWithCrash(t *testing.T, crash string) {
	w := newWorld(t, strangers(), withModel)
	gate := make(chan struct{})
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		newest := r.Messages[len(r.Messages)-1]
		switch heard := newest.Content.Text; {
		case newest.Role != "user":
		case strings.Contains(heard, "pills"):
			return openaitest.CallTool("scheduler__schedule_recurring", map[string]any{"message": "pills", "every_seconds": 3600})
		case strings.Contains(heard, "slowly"):
			a := openaitest.Say("That took a while.")
			a.Gate = gate
			return a
		}
		return openaitest.Say("OK.")
	})
	if crash != "" {
		w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = crash, "system.person.revoked"
	}
	w.start()
	w.telegramReady()
	w.pair(anna, 0)
	w.pair(boris, 0)
	w.telegram.Say(boris, "remind me of the pills every hour")
	w.told(boris, 3)
	asked := w.model.Total()
	for _, command := range []string{"/push name=first dig slowly", "/push name=second dig slowly", "/run 1"} {
		w.telegram.Say(boris, command)
	}
	w.told(boris, 6)
	w.telegram.Say(boris, "think slowly")
	w.eventually("a turn and a task", func() bool { return w.model.Total() == asked+2 })
	w.read(w.telegram.Say(boris, "and then this, slowly"))
	w.telegram.Say(anna, "think slowly")
	w.eventually("a turn of the owner", func() bool { return w.model.Total() == asked+3 })
	asked = w.model.Total()

	out, _, code := w.cli("pairing", "revoke", "telegram_channel", strconv.Itoa(boris))
	if crash != "" {
		<-w.kernel.ended
		delete(w.env, "SWITCHBOARD_CRASH")
		w.start()
		w.telegramReady()
		if crash != "before 1" {
			asked++ // the owner's turn goes on
		} else {
			w.eventually("all that was running", func() bool { return w.model.Total() >= asked+3 })
			out, _, code = w.cli("pairing", "revoke", "telegram_channel", strconv.Itoa(boris))
			asked = w.model.Total()
		}
	}
	if crash == "" || crash == "before 1" {
		if code != 0 {
			t.Fatalf("revoking ends with %d", code)
		}
		contains(t, "the output", out, "1002 is no longer approved on telegram_channel.",
			"Ended: 2 answers, 1 reminder, 2 tasks.", "- reminder r1", "- task t")
	}
	close(gate)
	w.told(anna, 3)
	w.eventually("the tasks to end", func() bool {
		return !strings.Contains(w.must("tasks", "list"), "running") && !strings.Contains(w.must("tasks", "list"), "queued")
	})
	w.settled()
	if n := w.model.Total(); n != asked {
		t.Errorf("the model was asked %d times after the revocation", n-asked)
	}
	if texts := w.texts(boris); len(texts) != 6 {
		t.Errorf("he was told %q after the revocation", texts[6:])
	}
	var active []string
	for line := range strings.SplitSeq(w.must("schedules", "list"), "\n") {
		if strings.Contains(line, "pills") && !strings.Contains(line, "cancelled") {
			active = append(active, line)
		}
	}
	if slices.Sort(active); len(active) > 0 {
		t.Errorf("reminders of his: %q", active)
	}
	if dead := w.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %q", dead)
	}
}
