package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

var event = regexp.MustCompile(`\be\d+\b`)

// What people, models and manifests write controls no terminal, in no listing.
func TestNoListingControlsTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "\x1b]0;pwned\x07\x1b[2J\u009b31mevil\u202etxt\u2066"
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Answer{Text: "the model says " + evil} })
	w.dropIn("jester", "", "name: \"jester \\e]0;pwned\\a\\u009b\\u202e\"\nid: jester\n")
	w.start()
	w.telegramReady()
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: anna, FirstName: evil}, Text: "one " + evil})
	w.told(anna, 1)
	w.telegram.Inject(telegramtest.Incoming{From: telegramtest.User{ID: clara, FirstName: evil}, Text: "two " + evil})
	w.told(clara, 1)
	session := ""
	for _, args := range [][]string{
		{"pairing", "list"}, {"people", "list"}, {"groups", "list"}, {"events", "tail", "-n", "200"}, {"events", "dead"}, {"sessions", "list"}, {"sessions", "show"},
		{"trace"},
		{"extensions", "list"}, {"channels", "list"}, {"agents", "list"}, {"memory", "list"}, {"schedules", "list"},
		{"tasks", "list"},
		{"links", "list"}, {"status"}, {"doctor"}, {"logs"},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			all := append(append([]string{}, args...), more...)
			switch strings.Join(args, " ") {
			case "sessions show":
				all = append(all, session)
			case "trace":
				all = append(all, "--all", event.FindString(w.must("events", "tail")))
			}
			out, complaints, code := w.cli(all...)
			if code != 0 && args[0] != "doctor" { // which finds the manifest
				t.Errorf("%q: exit status %d, %s", all, code, complaints)
			}
			if at := strings.IndexAny(out+complaints, "\x1b\x07\u009b\u202e\u2066"); at >= 0 {
				t.Errorf("%q prints %q", all, (out + complaints)[max(0, at-40):min(len(out+complaints), at+40)])
			}
			if args[0] == "sessions" && args[1] == "list" && more != nil {
				var sessions []struct{ ID string }
				if err := json.Unmarshal([]byte(out), &sessions); err != nil || len(sessions) == 0 {
					t.Fatalf("%v in %s", err, out)
				}
				session = sessions[0].ID
			}
		}
	}
	if out := w.must("sessions", "show", session, "--json"); !strings.Contains(out, `\u001b`) ||
		!strings.Contains(out, `\u202e`) {
		t.Errorf("the session as JSON lacks the characters: %s", out)
	}
}
