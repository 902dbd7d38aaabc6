package heartbeat

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

const kettle = "m1 remind of the kettle @telegram_channel"

func escalates(reason string) string {
	return fmt.Sprintf(`{"action":"escalate","reason":%q,"items":["m1"]}`, reason)
}

// An idle session once cost $248. The scout must see unchanged items only once.
func TestAnIdleAssistantCostsNothing(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.passes(24 * time.Hour)
	p.expect(0, 0)
	p.skipped(skipNothing)
	p.open(kettle, "m2 call the dentist")
	p.passes(5 * time.Hour)
	p.expect(1, 0)
	p.skipped(skipUnchanged)
	p.open(kettle) // one item less is nothing new
	p.passes(30 * time.Minute)
	p.expect(1, 0)
	p.open(kettle, "m3 buy milk")
	p.passes(2 * time.Hour)
	p.expect(2, 0)
	p.now = noon.Add(48 * time.Hour)
	p.asked = nil
	p.passes(8 * time.Hour)
	p.expect(2, 0) // once in each cool-down, because answers may depend on the time of day
}

// An assistant once escalated the same item every ten minutes.
func TestTheSameItemIsNotEscalatedAgain(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"named":     escalates("Pending (channel: telegram_channel): the kettle"),
		"not named": `{"action":"escalate","reason":"Pending: the kettle"}`,
		"unknown":   `{"action":"escalate","reason":"Pending: the kettle","items":["m99"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, config{})
			p.open(kettle)
			p.says = says
			p.passes(2 * time.Hour)
			p.expect(1, 1)
			p.starts(config{}) // another process
			p.passes(2 * time.Hour)
			p.open("m7 Remind of the KETTLE! @telegram_channel") // remembered again
			p.passes(time.Hour)
			p.expect(1, 1)
			p.passes(90 * time.Minute) // after the cool-down, the item is still open
			p.expect(2, 2)
		})
	}
}

// An assistant once sent "OK" to the user.
func TestANoopIsSilent(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		`{"action":"noop","reason":"OK"}`, "```json\n{\"action\": \"noop\"}\n```", `{"action":"done","reason":"OK"}`,
		"OK", "HEARTBEAT_OK", "", "null", `"escalate"`, `{"action":"ESCALATE!","reason":"x"}`,
		`{"action":"escalate","reason":" . "}`,
		`{"action":"escalate"`, `{"action":"escalate","reason":"a"}{"action":"escalate","reason":"b"}`,
		`Sure: {"action":"escalate","reason":"a"}`,
		"```\n{\"action\":\"escalate\",\"reason\":\"a\"}", `[{"action":"escalate","reason":"a"}]`,
		strings.Repeat("x", 2*maxAnswer),
	} {
		p := play(t, config{})
		p.open(kettle)
		p.says = says
		p.passes(time.Hour)
		if len(p.tasks) != 0 {
			t.Errorf("%.60q led to %+v", says, p.tasks)
		}
		if len(p.asked) > maxFailures {
			t.Errorf("%.60q was asked for %d times", says, len(p.asked))
		}
	}
}

// An assistant once had 3,268 polls and 25 notifications, and looked healthy. The
// figures count runs, model calls and escalations separately.
func TestFiguresCountResults(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.passes(time.Hour)
	p.open(kettle)
	p.says = escalates("Pending (channel: telegram_channel): the kettle")
	p.passes(time.Hour)
	p.open(kettle, "m2 call the dentist")
	p.says = "nonsense"
	p.passes(time.Hour)
	p.open(kettle, "m3 buy milk")
	p.says = `{"action":"noop"}`
	p.passes(10 * time.Minute)
	f := p.figures()
	if f.Runs != 19 || f.Skipped[skipNothing] != 6 || f.Skipped[skipUnchanged] != 10 || f.ModelCalls != 3 ||
		f.Invalid != 1 ||
		f.Noops != 1 || f.Escalations != 1 || f.InputTokens != 300 || f.OutputTokens != 30 {
		t.Errorf("figures: %+v", f)
	}
}

func TestNoModelIsAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		set  func(p *played)
		want string
	}{
		"before the active hours": {func(p *played) { p.now = time.Date(2026, 11, 20, 6, 59, 59, 0, time.UTC) },
			skipHours},
		"after them": {func(p *played) { p.now = time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC) },
			skipHours},
		"a person wrote just now": {func(p *played) { p.presence.UserAt = p.now.Add(-10*time.Minute + time.Second) },
			skipUser},
		"a clock that went back":    {func(p *played) { p.presence.UserAt = p.now.Add(time.Minute) }, skipUser},
		"a person waits":            {func(p *played) { p.presence.Busy = true }, skipBusy},
		"nothing is open":           {func(p *played) { p.open() }, skipNothing},
		"memory is down":            {func(p *played) { p.items = "" }, skipMemory},
		"memory sends invalid JSON": {func(p *played) { p.items = "what?" }, skipMemory},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, config{})
			p.open(kettle)
			tc.set(p)
			p.beats()
			p.skipped(tc.want)
			p.expect(0, 0)
		})
	}
}

func TestAModelIsAsked(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(p *played){
		"at the first minute":         func(p *played) { p.now = time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC) },
		"at the last":                 func(p *played) { p.now = time.Date(2026, 11, 20, 20, 59, 59, 0, time.UTC) },
		"ten minutes after a message": func(p *played) { p.presence.UserAt = p.now.Add(-10 * time.Minute) },
		"without any message ever":    func(p *played) { p.presence = sdk.Presence{} },
		"without any preferences":     func(p *played) { p.preferences = "" },
		"in summer, an hour before":   func(p *played) { p.now = time.Date(2026, 7, 20, 6, 0, 0, 0, time.UTC) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, config{})
			p.open(kettle)
			set(p)
			p.beats()
			p.expect(1, 0)
		})
	}
}

func TestHours(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		hours, at string
		want      bool
	}{
		{"08:00-22:00", "08:00", true}, {"08:00-22:00", "21:59", true}, {"08:00-22:00", "22:00", false},
		{"08:00-22:00", "07:59", false},
		{"22:00-06:30", "22:00", true}, {"22:00-06:30", "00:00", true}, {"22:00-06:30", "06:29", true},
		{"22:00-06:30", "06:30", false},
		{"22:00-06:30", "12:00", false}, {"08:00-24:00", "23:59", true}, {"08:00-24:00", "00:00", false},
		{"00:00-24:00", "03:00", true},
		{"09:00-09:00", "03:00", true}, {"", "03:00", true},
	} {
		h, err := parseHours(tc.hours)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse("15:04", tc.at)
		if got := h.contain(at); got != tc.want {
			t.Errorf("%s contains %s: %v", tc.hours, tc.at, got)
		}
	}
	for _, bad := range []string{"8-22", "08:00", "08:00-25:00", "-", "08:00-22:00-23:00", "morning"} {
		if _, err := parseHours(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.open(kettle, "m2 call the dentist")
	p.preferences = `{"memories":[{"id":"m9","text":"Write to me in Telegram","channel_id":"telegram_channel"}]}`
	p.says = "```json\n" + escalates("Pending (channel: telegram_channel):\n remind of the kettle") + "\n```"
	p.beats()
	p.expect(1, 1)
	for _, want := range []string{"Friday 2026-11-20 12:00", "Europe/Berlin",
		"[m1] remind of the kettle (channel: telegram_channel)", "[m2] call the dentist",
		"Write to me in Telegram (channel: telegram_channel)", "default channel is cli_channel"} {
		if !strings.Contains(p.asked[0], want) {
			t.Errorf("the scout is not told %q:\n%s", want, p.asked[0])
		}
	}
	task := p.tasks[0]
	if task.Name != "heartbeat" || !task.Quiet || task.ChannelID != "" {
		t.Errorf("the task is %+v", task)
	}
	for _, want := range []string{"Pending (channel: telegram_channel): remind of the kettle", "[m1]",
		"send_to_channel", "cli_channel"} {
		if !strings.Contains(task.Prompt, want) {
			t.Errorf("the agent is not told %q:\n%s", want, task.Prompt)
		}
	}
	if strings.Contains(task.Prompt, "{{") || strings.Contains(task.Prompt, "dentist") {
		t.Errorf("the agent's task is:\n%s", task.Prompt)
	}
	p.now = p.now.Add(time.Minute)
	p.open(kettle, "m2 call the dentist", "m3 buy milk")
	p.says = `{"action":"escalate","reason":"Pending: the dentist","items":["m2"]}`
	p.beats()
	p.expect(2, 2)
	if strings.Contains(p.asked[1], "[m1]") {
		t.Errorf("the scout is asked again about an escalated item:\n%s", p.asked[1])
	}
}

func TestAnItemThatBecomesDueIsNew(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]string{
		"moment": "2026-11-20T14:00:00+01:00", "local": "2026-11-20T14:00", "day": "2026-11-21",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hours := ""
			p := play(t, config{ActiveHours: &hours, Cooldown: "1000h"})
			p.open("m1 turn off the kettle !" + due)
			p.passes(time.Hour)
			p.expect(1, 0)
			p.says = escalates("It is due")
			p.passes(24 * time.Hour)
			p.expect(2, 1)
			if !strings.Contains(p.asked[1], "now or overdue") {
				t.Errorf("the scout is not told that it is due:\n%s", p.asked[1])
			}
		})
	}
}

func TestDoneSettlesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	p := play(t, config{Cooldown: "1h"})
	p.open(kettle, "m2 call the dentist")
	p.says = `{"action":"done","reason":"settled","items":["[m2]"]}`
	p.beats()
	p.passes(time.Hour)
	p.expect(2, 0)
	if !strings.Contains(p.asked[1], "[m1]") || strings.Contains(p.asked[1], "[m2]") {
		t.Errorf("then the scout is asked:\n%s", p.asked[1])
	}
	p.open("m2 call the dentist, not the doctor")
	p.passes(10 * time.Minute)
	p.expect(3, 0)
}

// Beats that queued up while the extension was down call no model.
func TestOldBeatsAskNothing(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.open(kettle)
	old := p.event()
	p.now = p.now.Add(time.Hour)
	p.commits(p.handles(old))
	p.skipped(skipLate)
	p.expect(0, 0)
}

// A beat whose commit is lost is handled again, and its decision happens once.
func TestKilledBeforeTheCommitItEscalatesOnce(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.open(kettle)
	p.says = escalates("Pending (channel: telegram_channel): the kettle")
	e := p.event()
	lost := p.handles(e)
	p.starts(config{})
	again := p.handles(e)
	for _, effects := range [][]string{keys(lost), keys(again)} {
		if len(effects) != 2 || effects[0] != "put state@0" || effects[1] != "publish beat:e1" {
			t.Errorf("effects: %q", effects)
		}
	}
	p.commits(again)
	p.passes(time.Hour)
	p.expect(2, 1)
}

func TestAModelThatCannotAnswer(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.open(kettle)
	p.says, p.fails = "", fmt.Errorf("no model: %w", contract.ErrUnavailable)
	p.passes(time.Hour)
	p.skipped(skipModel)
	if f := p.figures(); f.ModelCalls != 0 || !strings.Contains(f.Problem, "no model") {
		t.Errorf("figures: %+v", f)
	}
	p.asked = nil
	p.says, p.fails = `{"action":"esc`, errors.New("the line broke")
	p.passes(2 * time.Hour)
	p.expect(maxFailures, 0)
	p.open(kettle, "m2 call the dentist")
	p.says, p.fails = escalates("the kettle"), nil
	p.passes(time.Hour)
	p.expect(maxFailures+1, 1)
}

func TestManyItemsAreSplitIntoSeveralQuestions(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	var many []string
	for i := range 2*maxItems + 1 {
		many = append(many, fmt.Sprintf("m%d thing number %d", i, i))
	}
	p.open(many...)
	p.passes(2 * time.Hour)
	p.expect(3, 0)
}

func TestDamagedStateIsReset(t *testing.T) {
	t.Parallel()
	p := play(t, config{})
	p.kv = sdk.Value{Key: stateKey, Value: []byte("not json"), Version: 0}
	p.kv.Version = 7
	p.beats()
	p.skipped(skipNothing)
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	bad := "8 to 10"
	for _, c := range []config{{ActiveHours: &bad}, {Quiet: "soon"}, {Cooldown: "-1h"}} {
		if err := (&heartbeat{}).start(nil, nil, nil, time.UTC, c); err == nil ||
			!strings.Contains(err.Error(), "read config of heartbeat") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
