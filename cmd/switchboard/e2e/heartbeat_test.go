package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

const (
	scout        = "scout-model"
	kettleReason = "Pending (channel: telegram_channel): remind of the kettle"
	kettleText   = "Turn off the kettle!"
)

// hearth is a world with a heartbeat that looks every second, at any hour.
type hearth struct{ *world }

func newHearth(t *testing.T) hearth {
	t.Helper()
	h := hearth{newWorld(t, withTelegram(), withModel)}
	h.model.Handle(h.orchestrator)
	h.says("noop", "")
	return h
}

// beating configures the heartbeat, or turns it off.
func (h hearth) beating(on bool, more ...string) {
	h.t.Helper()
	h.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d"]}}
models: {default: [openai/test-model], scout: openai/%s}
extensions:
  heartbeat: {enabled: %v, config: {every: 1s, active_hours: "", quiet: 0s}}
%s
`, anna, scout, on, strings.Join(more, "\n")))
}

// says sets what the scout answers.
func (h hearth) says(action, reason string) {
	b, _ := json.Marshal(map[string]string{"action": action, "reason": reason})
	h.model.HandleFor(scout, func(openaitest.Request) openaitest.Answer { return openaitest.Say(string(b)) })
}

// orchestrator saves memories and does the tasks of the heartbeat.
func (h hearth) orchestrator(r openaitest.Request) openaitest.Answer {
	beat := strings.Contains(string(r.Raw), kettleReason)
	switch done := r.Messages[len(r.Messages)-1].Role == "tool"; {
	case beat && done:
		return openaitest.Say("OK")
	case done:
		return openaitest.Say("Noted.")
	case beat:
		return openaitest.CallTool(sendTool, map[string]string{"channel_id": "telegram_channel", "text": kettleText})
	}
	return openaitest.CallTool("memory__remember", map[string]string{
		"text": "Remind Anna of the kettle", "kind": "open", "channel_id": "telegram_channel",
	})
}

// questions are how often the scout was asked.
func (h hearth) questions() (n int) {
	for _, r := range h.model.Requests() {
		if r.Model == scout {
			n++
		}
	}
	return n
}

// figures are what status says of the heartbeat.
type figures struct {
	Runs         int64            `json:"runs"`
	Skipped      map[string]int64 `json:"skipped"`
	ModelCalls   int64            `json:"model_calls"`
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Escalations  int64            `json:"escalations"`
	Deliveries   int              `json:"deliveries"`
	Undelivered  []struct {
		Event  string `json:"event"`
		Reason string `json:"reason"`
	} `json:"undelivered"`
}

// asked is what status says of the heartbeat now: nothing, its figures, or why
// it could not be asked.
func (h hearth) asked() (s struct {
	Heartbeat *figures `json:"heartbeat"`
	Problem   string   `json:"heartbeat_problem"`
},
) {
	h.t.Helper()
	if err := json.Unmarshal([]byte(h.must("status", "--json")), &s); err != nil {
		h.t.Fatal(err)
	}
	return s
}

// status waits for the figures, which are unknown while the heartbeat starts.
func (h hearth) status() (f figures) {
	h.t.Helper()
	h.eventually("figures of the heartbeat", func() bool {
		s := h.asked()
		if s.Heartbeat != nil {
			f = *s.Heartbeat
		}
		return s.Heartbeat != nil
	})
	return f
}

// since is when each extension became what it is.
func (h hearth) since() map[string]int64 {
	h.t.Helper()
	out := map[string]int64{}
	for _, x := range h.extensions(h.control()) {
		out[x.GetId()] = x.GetSinceUs()
	}
	return out
}

// beats waits for a number of further looks.
func (h hearth) beats(n int64) {
	h.t.Helper()
	before := h.status().Runs
	h.eventually("further looks of the heartbeat", func() bool { return h.status().Runs >= before+n })
}

// Without open items no model is called, a noop sends nothing, and no item is asked twice.
func TestHeartbeatIsSilentWithoutNews(t *testing.T) {
	t.Parallel()
	h := newHearth(t)
	h.beating(true)
	h.start()
	h.telegramReady()
	p := h.attach()

	h.beats(2)
	if n := h.model.Total(); n != 0 {
		t.Errorf("with nothing open, models were asked %d times", n)
	}

	if got := p.ask("Remind me in Telegram of the kettle, some time"); got != "Noted." {
		t.Fatalf("the terminal shows %q", got)
	}
	h.eventually("a question to the scout", func() bool { return h.questions() == 1 })
	h.beats(2)
	if n, sent := h.questions(), h.texts(anna); n != 1 || len(sent) != 0 || len(p.texts()) != 1 {
		t.Errorf("after a noop the scout was asked %d times, Telegram has %q, the terminal %q", n, sent, p.texts())
	}

	h.says("escalate", kettleReason)
	if got := p.ask("Remind me in Telegram of the kettle!!"); got != "Noted." { // the same again is no news
		t.Fatalf("the terminal shows %q", got)
	}
	h.beats(2)
	if n := h.questions(); n != 1 {
		t.Errorf("about the same item the scout was asked %d times", n)
	}
	// Another interval restarts the heartbeat and nothing else; what it has asked is
	// not forgotten.
	before := h.since()
	h.write(strings.Replace(h.text("config.yaml"), "every: 1s", "every: 2s", 1), 0o600, "config.yaml")
	h.eventually("the new interval", func() bool {
		return strings.Contains(h.must("schedules", "list", "--all"), "every 2 s")
	})
	h.beats(2)
	for id, at := range h.since() {
		if changed := at != before[id]; changed != (id == "heartbeat") {
			t.Errorf("%s is active since %d, before since %d", id, at, before[id])
		}
	}
	h.must("schedules", "pause", "heartbeat.beat")
	h.settled()
	if n := h.questions(); n != 1 {
		t.Errorf("after a restart of the heartbeat the scout was asked %d times", n)
	}
}

// escalated waits for the message, and checks that it was the only one.
func (h hearth) escalated(p *person) {
	h.t.Helper()
	if got := h.told(anna, 1).Text; got != kettleText {
		h.t.Errorf("Telegram shows %q", got)
	}
	h.beats(3)
	if got := h.texts(anna); len(got) != 1 {
		h.t.Errorf("Telegram has %q", got)
	}
	if p != nil && len(p.texts()) != 0 {
		h.t.Errorf("the terminal has %q", p.texts())
	}
	if n := h.count(contract.TopicAgentTask); n != 1 {
		h.t.Errorf("it escalated %d times", n)
	}
	h.eventually("a delivered escalation", func() bool { s := h.status(); return s.Escalations == 1 && s.Deliveries == 1 })
}

// remembered makes a home in which the item is open and nothing runs.
func (h hearth) remembered() {
	h.t.Helper()
	h.beating(false)
	h.start()
	p := h.attach()
	if got := p.ask("Remind me in Telegram of the kettle, some time"); got != "Noted." {
		h.t.Fatalf("the terminal shows %q", got)
	}
	h.settled()
	p.leave()
	if s := h.asked(); s.Heartbeat != nil || s.Problem != "" {
		h.t.Errorf("of a heartbeat that is turned off, status says %+v", s)
	}
	h.stop()
	h.says("escalate", kettleReason)
}

// An open item with a channel leads, through the scout's escalation and the
// orchestrator, to one message on that channel.
func TestHeartbeatEscalatesOnceToItsChannel(t *testing.T) {
	t.Parallel()
	h := newHearth(t)
	h.remembered()
	h.beating(true)
	h.start()
	h.telegramReady()
	p := h.attach()
	h.escalated(p)
	if n := h.questions(); n != 1 {
		t.Errorf("the scout was asked %d times", n)
	}
	s := h.status()
	if s.ModelCalls != 1 || s.InputTokens == 0 || s.OutputTokens == 0 || len(s.Undelivered) != 0 ||
		s.Skipped["nothing"]+s.Skipped["unchanged"] == 0 {
		t.Errorf("status: %+v", s)
	}
	if out := h.must("status"); !strings.Contains(out, "1 model call (") ||
		!strings.Contains(out, "1 escalation, 1 delivered") {
		t.Errorf("status says:\n%s", out)
	}
	if out, _, _ := h.cli("doctor"); strings.Contains(out, "not delivered") {
		t.Errorf("doctor says:\n%s", out)
	}
	asked := slices.IndexFunc(h.model.Requests(), func(r openaitest.Request) bool { return r.Model == scout })
	if q := h.model.Requests()[asked].Last("user"); !strings.Contains(q, "kettle (channel: telegram_channel)") ||
		strings.Contains(q, fmt.Sprint(anna)) {
		t.Errorf("the scout was asked:\n%s", q)
	}
}

// The commit of an escalation decides: whichever process dies there, the
// kernel or the heartbeat, there is one message.
func TestHeartbeatKilledWhileItEscalates(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before 1", "after 1"} {
		for _, victim := range []string{"", "heartbeat:heartbeat"} {
			t.Run(strings.Join([]string{victim, point}, " "), func(t *testing.T) {
				t.Parallel()
				h := newHearth(t)
				h.remembered()
				h.beating(true, "processes: separate")
				h.env["SWITCHBOARD_CRASH"], h.env["SWITCHBOARD_CRASH_FROM"], h.env["SWITCHBOARD_CRASH_VICTIM"] = point,
					contract.TopicAgentTask, victim
				h.launch() // it may die before it takes terminals
				delete(h.env, "SWITCHBOARD_CRASH")
				delete(h.env, "SWITCHBOARD_CRASH_FROM")
				if victim == "" {
					select {
					case <-h.kernel.ended:
					case <-time.After(patience):
						t.Fatal("the kernel was not killed")
					}
					h.start()
				}
				h.escalated(nil)
			})
		}
	}
}

// An escalation without a delivery is reported.
func TestHeartbeatSaysWhatReachedNobody(t *testing.T) {
	t.Parallel()
	h := newHearth(t)
	h.remembered()
	h.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("OK") })
	h.beating(true)
	h.start()
	h.telegramReady()
	p := h.attach()
	h.eventually("the agent's last word", func() bool { return h.count(contract.TopicAgentOutput) == 2 })
	h.beats(1)
	s := h.status()
	if s.Escalations != 1 || s.Deliveries != 0 || len(s.Undelivered) != 1 || s.Undelivered[0].Reason != kettleReason {
		t.Errorf("status: %+v", s)
	}
	if len(p.texts()) != 0 || len(h.texts(anna)) != 0 {
		t.Errorf("the terminal has %q, Telegram %q", p.texts(), h.texts(anna))
	}
	if out := h.must("trace", s.Undelivered[0].Event); !strings.Contains(out, contract.TopicAgentTask) {
		t.Errorf("trace says:\n%s", out)
	}
}

// Each person has a heartbeat of their own, the owner's alone being on: what is one's own
// is in no other's check, and is brought up to them alone.
func TestHeartbeatOfAnotherPerson(t *testing.T) {
	t.Parallel()
	h := newHearth(t)
	h.model.Handle(func(r openaitest.Request) openaitest.Answer {
		switch said := r.Last("user"); {
		case len(r.Results()) > 0:
			return openaitest.Say("Noted.")
		case strings.Contains(string(r.Raw), "Reason: the visa"): // the item names no channel that he has
			return openaitest.CallTool(sendTool, map[string]string{"channel_id": "telegram_channel", "text": "Renew your visa!"})
		case strings.Contains(said, "remember"):
			return openaitest.CallTool("memory__remember", map[string]string{"text": "Boris renews his visa", "kind": "open"})
		}
		return openaitest.Say("Hello.")
	})
	h.says("escalate", "the visa")
	h.config(fmt.Sprintf(`channels: {telegram_channel: {allow_from: ["%d", "%d"]}}
models: {default: [openai/test-model], scout: openai/%s}
extensions:
  heartbeat: {config: {every: 1s, active_hours: "", quiet: 0s}}
`, anna, boris, scout))
	h.start()
	h.telegramReady()
	h.telegram.Say(anna, "hello")
	h.told(anna, 1)
	h.telegram.Say(boris, "remember my visa")
	h.told(boris, 1)
	h.beats(3)
	if n := h.questions(); n != 0 {
		t.Errorf("about what is another person's, the owner's scout was asked %d times", n)
	}
	h.telegram.Say(boris, "/heartbeat")
	contains(t, "before it is on", h.told(boris, 2).Text, "/heartbeat on")
	h.telegram.Say(boris, "/heartbeat on")
	contains(t, "when it is turned on", h.told(boris, 3).Text, "/heartbeat off")
	if got := h.told(boris, 4).Text; got != "Renew your visa!" {
		t.Errorf("boris is shown %q", got)
	}
	h.eventually("a delivered escalation", func() bool { s := h.status(); return s.Escalations == 1 && s.Deliveries == 1 })
	h.beats(2)
	if got := h.texts(anna); len(got) != 1 {
		t.Errorf("the owner is shown %q", got)
	}
	if n := h.questions(); n != 1 {
		t.Errorf("the scout was asked %d times", n)
	}
	contains(t, "status", h.must("status"), "1 escalation, 1 delivered")
	h.must("people", "remove", fmt.Sprintf("telegram_channel/%d", boris), "--yes")
	h.settled()
	h.beats(2)
	if n := h.questions(); n != 1 {
		t.Errorf("after he was removed, the scout was asked %d times", n)
	}
}
