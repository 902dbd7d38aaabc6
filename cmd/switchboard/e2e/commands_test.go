package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func TestPairingOnTheCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strangers())
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "hello")
	w.told(anna, 1)
	people := list[*adminv1.PeopleResponse](w, "pairing", "list")
	if len(people.Waiting) != 1 || !strings.Contains(w.texts(anna)[0], people.Waiting[0].Code) {
		t.Fatalf("people are %+v", people)
	}
	contains(t, "the output", w.must("pairing", "approve", people.Waiting[0].Code), "1001")
	contains(t, "the greeting", w.told(anna, 2).Text, "connected")
	_, complaints, code := w.cli("pairing", "approve", "AAAAAAAA")
	if code == 0 {
		t.Error("a made-up code was approved")
	}
	contains(t, "stderr", complaints, "AAAAAAAA", "pairing list")
	w.telegram.Say(clara, "hello")
	w.told(clara, 1)
	contains(t, "the output", w.must("pairing", "clear", "cli_channel"), "No code was waiting on cli_channel")
	contains(t, "the output", w.must("pairing", "clear"), "Deleted 1 code.")
	_, complaints, code = w.cli("pairing", "clear", "nosuch")
	if code == 0 {
		t.Error("the codes of a channel that does not exist were deleted")
	}
	contains(t, "stderr", complaints, `there is no channel "nosuch"`, "channels list")
	if people = list[*adminv1.PeopleResponse](w, "pairing", "list"); len(people.Waiting) != 0 {
		t.Errorf("people are %+v", people)
	}
	w.must("pairing", "revoke", "telegram_channel", "1001")
	if people = list[*adminv1.PeopleResponse](w, "pairing", "list"); len(people.Approved) != 0 {
		t.Errorf("people are %+v", people)
	}
}

func TestTraceFollowsAMessageDownToThePlatform(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Queue(
		openaitest.CallTool(sendTool, map[string]string{"channel_id": "cli_channel", "text": "Hi from Telegram"}),
		openaitest.Say("I said hi."),
	)
	w.start()
	w.telegramReady()
	p := w.attach()
	w.telegram.Say(anna, "say hi in the terminal")
	w.told(anna, 1)
	p.hears(1)
	w.settled()
	root := w.query(`SELECT seq FROM event WHERE topic = 'user.message'`)[0]
	for _, id := range []string{"e" + root, "1001/2"} { // the event, and the reply as Telegram knows it
		got := list[admin.Trace](w, "trace", id)
		if got.Root != "e"+root {
			t.Errorf("the root of %s is %s", id, got.Root)
		}
		tree, err := json.Marshal(got.Tree)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, "the tree of "+id, string(tree), "user.message", "agent.input.orchestrator", "core/send_to_channel",
			"channel.send.cli_channel",
			"agent.output", "channel.send.telegram_channel", `"1001/2"`, "say hi in the terminal", "took_millis")
	}
	contains(t, "the output", w.must("trace", "e"+root), "1001/2", "ms")
}

func TestEveryListingTellsWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram())
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "remind me tomorrow at 9 to call home")
	w.told(anna, 1)
	w.settled()
	for command, parts := range map[string][]string{
		"status":          {"telegram_channel", "ready"},
		"channels list":   {"telegram_channel", "cli_channel"},
		"agents list":     {"orchestrator", "echo"},
		"extensions list": {"scheduler", "active"},
		"sessions list":   {"orchestrator", "telegram_channel", "1001"},
		"schedules list":  {"call home", "r1"},
		"events tail":     {"user.message", "agent.output"},
	} {
		args := strings.Fields(command)
		contains(t, command, w.must(args...), parts...)
		if out := w.must(append(args, "--json")...); !json.Valid([]byte(out)) && command != "events tail" {
			t.Errorf("%s --json prints no JSON: %s", command, out)
		} else {
			contains(t, command+" --json", out, parts...)
		}
	}
	sent := w.must("channels", "send", "telegram_channel", "dinner is ready")
	contains(t, "the output", sent, "delivered")
	if got := w.told(anna, 2).Text; got != "dinner is ready" {
		t.Errorf("Telegram has %q", got)
	}
	w.must("schedules", "cancel", "r1")
	if out := w.must("schedules", "list"); strings.Contains(out, "call home") {
		t.Errorf("the cancelled reminder is listed: %s", out)
	}
	w.crash()
	_, complaints, code := w.cli("channels", "list")
	if code == 0 {
		t.Error("exit status 0 without a kernel")
	}
	contains(t, "stderr", complaints, "switchboard run")
}
