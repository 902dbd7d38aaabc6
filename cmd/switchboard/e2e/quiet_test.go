package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// In quiet hours what another person sends waits, also while the kernel is killed, and
// replies do not wait for it. It comes once when they end.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		if strings.HasPrefix(r.Last("user"), "tell ") && len(r.Results()) == 0 {
			return openaitest.CallTool("use_tool", map[string]any{"name": "core/send_to_person",
				"arguments": map[string]string{"person": strings.Fields(r.Last("user"))[1], "text": "dinner is ready"}})
		}
		return echo(r)
	})
	w.start()
	w.telegramReady()
	said := func(chat int64, text string) func() bool {
		return func() bool {
			return slices.ContainsFunc(w.texts(chat), func(shown string) bool { return strings.Contains(shown, text) })
		}
	}
	say := func(text string) {
		w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: boris, FirstName: "Boris"}, Text: text})
	}
	say("/timezone UTC")
	w.eventually("the time zone", said(boris, "Your time zone is UTC now"))
	now := time.Now().UTC()
	say(fmt.Sprintf("/quiet %s-%s", now.Add(-time.Hour).Format("15:04"), now.Add(12*time.Hour).Format("15:04")))
	w.eventually("the quiet hours", said(boris, "Your quiet hours are"))
	w.telegram.Say(anna, "tell Boris <dinner>")
	w.eventually("the answer to the sender", said(anna, "<dinner>"))
	if results := strings.Join(w.model.Requests()[w.model.Total()-1].Results(), "\n"); !strings.Contains(results, "quiet hours end") {
		t.Errorf("the sender's agent is told %q", results)
	}
	w.restart()
	say("<awake>")
	w.eventually("a reply in the quiet hours", said(boris, "<awake>"))
	if said(boris, "dinner is ready")() {
		t.Errorf("in the quiet hours, boris is shown %q", w.texts(boris))
	}
	say("/quiet off")
	w.eventually("what was held", said(boris, "dinner is ready"))
	w.settled()
	if got := w.texts(boris); len(got) != 5 || !strings.Contains(got[3], "dinner is ready") {
		t.Errorf("boris is shown %q", got)
	}
}
