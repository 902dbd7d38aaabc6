package e2e

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// chief is an agent that is nothing but a manifest, with the tools of the lab.
const chief = `api: 1
id: chief
name: Chief
version: 1.0.0
agent:
  model: default
  instructions: You run the lab.
  uses_tools: [core/*, lab/*]
`

// lab is a home where the chief answers and the lab has slow tools.
func lab(t *testing.T) (*world, *person) {
	t.Helper()
	w := newWorld(t, withModel)
	w.config("agents: {default: chief}")
	w.dropIn("chief", "", chief)
	w.probe("lab", "tools", "provides: {tools: true}")
	w.start()
	w.state(w.control(), "lab", "active")
	return w, w.attach()
}

// release lets the tools of the lab end.
func (w *world) release() { w.t.Helper(); w.write("", 0o600, "data", "lab", "release") }

func TestTurnSurvivesTheDeathOfTheAgentsProcessWhileAToolRuns(t *testing.T) {
	t.Parallel()
	w, p := lab(t)
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Say("It is done."))
	p.say("do it")
	w.line(1, "lab", "calls")
	agent := w.extensionProcess("agent:chief")
	kill(agent, syscall.SIGKILL)
	w.eventually("another process of the agent", func() bool { return w.extensionProcess("agent:chief").pid != agent.pid })
	w.release()
	if got := p.hears(1); got != "It is done." {
		t.Errorf("the terminal shows %q", got)
	}
	if n := w.model.Total(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	} else if got := w.model.Requests()[1].Results(); len(got) != 1 || got[0] != "the result of slow" {
		t.Errorf("the model was told %q", got)
	}
	if got := w.lines("lab", "calls"); len(got) != 1 {
		t.Errorf("the tool ran %d times", len(got))
	}
}

func TestTurnSurvivesTheDeathOfTheKernelWhileAToolRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, arguments, result string
		runs                    int
	}{
		{"slow", `{"n": 1}`, "unknown whether", 1}, // must not run twice: the model gets the reason
		{"look", `{}`, "the result of look", 2},    // has no effect: it is simply repeated
	} {
		t.Run(tt.tool, func(t *testing.T) {
			t.Parallel()
			w, p := lab(t)
			w.model.Queue(openaitest.CallTool("lab__"+tt.tool, tt.arguments), openaitest.Say("It is done."))
			p.say("do it")
			w.line(1, "lab", "calls")
			w.crash()
			w.release()
			w.start()
			if got := w.attach().hears(1); got != "It is done." {
				t.Errorf("the terminal shows %q", got)
			}
			if n := w.model.Total(); n != 2 {
				t.Errorf("the model was asked %d times", n)
			} else if got := w.model.Requests()[1].Results(); len(got) != 1 || !strings.Contains(got[0], tt.result) {
				t.Errorf("the model was told %q", got)
			}
			if got := w.lines("lab", "calls"); len(got) != tt.runs {
				t.Errorf("the tool ran %d times", len(got))
			}
		})
	}
}

func TestTurnSurvivesTheDeathOfTheKernelAfterATool(t *testing.T) {
	t.Parallel()
	w, p := lab(t)
	w.release()
	gate := make(chan struct{})
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Answer{Gate: gate})
	p.say("do it")
	w.eventually("the second request", func() bool { return w.model.Total() == 2 })
	w.crash()
	close(gate)
	w.model.Queue(openaitest.Say("It is done."))
	w.start()
	if got := w.attach().hears(1); got != "It is done." {
		t.Errorf("the terminal shows %q", got)
	}
	if n := w.model.Total(); n != 3 {
		t.Errorf("the model was asked %d times", n)
	} else if got := w.model.Requests()[2].Results(); len(got) != 1 || got[0] != "the result of slow" {
		t.Errorf("the model was told %q", got)
	}
	if got := w.lines("lab", "calls"); len(got) != 1 {
		t.Errorf("the tool ran %d times", len(got))
	}
}

func TestToolThatDiesIsNotRepeatedUnlessThatIsHarmless(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool, arguments, result string
		runs                    int
	}{
		{"slow", `{"n": 1}`, "unknown whether", 1},
		{"look", `{}`, "the result of look", 2},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			t.Parallel()
			w, p := lab(t)
			w.model.Queue(openaitest.CallTool("lab__"+tt.tool, tt.arguments), openaitest.Say("It is done."))
			p.say("do it")
			w.line(1, "lab", "calls")
			kill(w.extensionProcess("probe lab"), syscall.SIGKILL)
			w.release()
			if got := p.hears(1); got != "It is done." {
				t.Errorf("the terminal shows %q", got)
			}
			if got := w.model.Requests()[1].Results(); len(got) != 1 || !strings.Contains(got[0], tt.result) {
				t.Errorf("the model was told %q", got)
			}
			if got := w.lines("lab", "calls"); len(got) != tt.runs {
				t.Errorf("the tool ran %d times", len(got))
			}
		})
	}
}

func TestModelIsToldWhatIsWrongWithItsCalls(t *testing.T) {
	t.Parallel()
	w, p := lab(t)
	w.release()
	for _, tt := range []struct {
		name, tool, arguments string
		told                  []string
	}{
		{"no JSON", "lab__slow", `{"n": `, []string{"not valid JSON"}},
		{"wrong type", "lab__slow", `{"n": "one"}`, []string{"schema", "n"}},
		{"missing", "lab__slow", `{}`, []string{"schema", "n"}},
		{"no such tool", "lab__nothing", `{}`, []string{"no tool", "lab/nothing", "lab/slow"}},
		{"not granted", "scheduler__list_schedules", `{}`, []string{"not granted", "uses_tools"}},
		{"unknown channel", sendTool, `{"channel_id": "slack_channel", "text": "hi"}`,
			[]string{"no channel", "slack_channel", "cli_channel", "Nothing was sent"}},
		{"unconfigured channel", sendTool, `{"channel_id": "telegram_channel", "text": "hi"}`,
			[]string{"not set up", "TELEGRAM_BOT_TOKEN", "Nothing was sent"}},
	} {
		w.model.Queue(openaitest.CallTool(tt.tool, tt.arguments), openaitest.Say("After "+tt.name))
		if got := p.ask("try: " + tt.name); got != "After "+tt.name {
			t.Errorf("%s: the terminal shows %q", tt.name, got)
		}
		results := w.model.Requests()[w.model.Total()-1].Results()
		for _, part := range tt.told {
			if len(results) != 1 || !strings.Contains(results[0], part) {
				t.Errorf("%s: the model was told %q, without %q", tt.name, results, part)
			}
		}
	}
	w.settled()
	if n := w.count("channel.send.telegram_channel"); n != 0 {
		t.Errorf("%d messages were sent to Telegram", n)
	}
	if got := w.lines("lab", "calls"); len(got) != 0 {
		t.Errorf("tools ran: %q", got)
	}
}

func TestModelInTroubleIsExplainedAndAnswersOnceItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.config("extensions: {openai: {config: {retries: 1, idle_timeout: 10s}}}") // for the one that is stalled
	w.start()
	p := w.attach()
	twice := func(a openaitest.Answer) []openaitest.Answer { return []openaitest.Answer{a, a} }
	for _, tt := range []struct {
		name    string
		answers []openaitest.Answer
		told    string
	}{
		{"server errors", twice(openaitest.Fail(http.StatusInternalServerError, "The server had an error")), "500"},
		{"refused", []openaitest.Answer{openaitest.Fail(http.StatusBadRequest, "This model is too small")}, "too small"},
		{"rate limit for long", []openaitest.Answer{openaitest.RateLimited("3600")}, "429"},
		{"stalled", []openaitest.Answer{openaitest.Break(openaitest.Stall, "This is never", 1)}, "stopped sending"},
		{"rubbish", []openaitest.Answer{openaitest.Break(openaitest.Rubbish, "This is never", 1)}, "cannot be used"},
		{"cut", twice(openaitest.Break(openaitest.Cut, "This is never", 1)), "closed the connection"},
		{"empty", twice(openaitest.Answer{}), "the model gave an empty answer"},
	} {
		w.model.Queue(tt.answers...)
		got := p.ask("say something: " + tt.name)
		contains(t, tt.name, got, "Sorry", tt.told)
		w.eventually("all answers of "+tt.name, func() bool { return w.model.Left() == 0 })
		w.model.Queue(openaitest.Say("I am back."))
		if got := p.ask("and now?"); got != "I am back." {
			t.Errorf("after %s: the terminal shows %q", tt.name, got)
		}
	}
	// Trouble that passes is not even seen.
	for _, passing := range []openaitest.Answer{
		openaitest.RateLimited("1"), openaitest.Break(openaitest.Cut, "This is never", 1),
	} {
		w.model.Queue(passing, openaitest.Say("Here I am."))
		if got := p.ask("hello?"); got != "Here I am." {
			t.Errorf("after trouble that passes: %q", got)
		}
	}
	if text := w.text("logs", "openai.log"); !strings.Contains(text, w.model.BaseURL()) {
		t.Errorf("the log does not have the address:\n%s", text)
	}
}

func TestModelThatIsDownIsExplainedAndAnswersOnceItIsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	w.config("extensions: {openai: {config: {retries: 1}}}")
	w.start()
	p := w.attach()
	w.model.Close()
	got := p.ask("hello?")
	contains(t, "the answer", got, "I couldn't answer", "cannot be reached", "OPENAI_BASE_URL")
	if strings.Contains(got, "127.0.0.1") {
		t.Errorf("a chat is shown the address of the model: %q", got)
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(w.model.URL, "http://"))
	if err != nil {
		t.Skipf("the address was taken meanwhile: %v", err)
	}
	back := openaitest.Serve(l)
	t.Cleanup(back.Close)
	back.Queue(openaitest.Say("I am back."))
	if got := p.ask("and now?"); got != "I am back." {
		t.Errorf("the terminal shows %q", got)
	}
}

func TestModelsProcessThatDiesInMidAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel, grouped) // the terminal stays
	gate := make(chan struct{})
	defer close(gate)
	w.model.Queue(openaitest.Answer{Gate: gate}, openaitest.Say("Here I am."))
	w.start()
	p := w.attach()
	p.say("hello?")
	w.eventually("the first request", func() bool { return w.model.Total() == 1 })
	kill(w.extensionProcess("openai:openai"), syscall.SIGKILL)
	if got := p.hears(1); got != "Here I am." {
		t.Errorf("the terminal shows %q", got)
	}
}

func TestStopEndsARunningTurnAtOnce(t *testing.T) {
	t.Parallel()
	w, p := lab(t)
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`))
	p.say("do it")
	w.line(1, "lab", "calls")
	if got := p.ask("/stop"); !strings.Contains(got, "Stopped") {
		t.Errorf("the terminal shows %q", got)
	}
	w.release()
	w.model.Queue(openaitest.Say("Something else."))
	if got := p.ask("do something else"); got != "Something else." {
		t.Errorf("the terminal shows %q", got)
	}
	w.settled()
	if got := p.texts(); len(got) != 2 {
		t.Errorf("the terminal shows %q", got)
	}
}

// All that names a model may stand in secrets.env, and a change of its address counts
// at once. A name that nothing reads is a finding of doctor.
func TestModelIsNamedBySecretsFileAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withModel)
	other := openaitest.New(t)
	other.RequireKey(openaiKey)
	secrets := func(address, more string) {
		w.write("OPENAI_API_KEY="+openaiKey+"\nOPENAI_MODEL=test-model\nOPENAI_BASE_URL="+address+"\n"+more, 0o600,
			"secrets.env")
	}
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"} {
		delete(w.env, name)
	}
	secrets(w.model.BaseURL(), "")
	w.model.Queue(openaitest.Say("I am the first."))
	w.start()
	if got := w.attach().ask("who are you?"); got != "I am the first." {
		t.Errorf("the terminal shows %q", got)
	}
	if out, _, _ := w.cli("doctor"); strings.Contains(out, "nothing reads") {
		t.Errorf("doctor finds:\n%s", out)
	}
	other.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("I am the other.") })
	w.model.Handle(func(openaitest.Request) openaitest.Answer { return openaitest.Say("I am the first.") })
	c := w.control()
	before := w.state(c, "openai", "active").Pid
	secrets(other.BaseURL(), "TELEGRAM_TOKEN=1:a\n")
	w.eventually("the built-ins to have the new address", func() bool { // in the environment of their process
		e := w.extension(c, "openai")
		return e.State == "active" && e.Pid != before
	})
	w.state(c, "cli_channel", "active")
	if got := w.attach().ask("and now?"); got != "I am the other." {
		t.Errorf("with another address the terminal shows %q", got)
	}
	if out, _, _ := w.cli("doctor"); !strings.Contains(out, "nothing reads TELEGRAM_TOKEN") {
		t.Errorf("doctor does not find the name that nothing reads:\n%s", out)
	}
}
