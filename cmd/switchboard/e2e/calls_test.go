package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

// echoAgent answers what people write without a model.
const echoAgent = "api: 1\nid: echo\nname: Echo\nversion: 1.0.0\nagent: {echo: true}\n"

// newCaller is a home where a dropped-in extension calls tools.
func newCaller(t *testing.T, config, permissions string) *shop {
	t.Helper()
	s := &shop{world: newWorld(t, withTelegram())}
	s.config(fmt.Sprintf("%sagents: {default: echo, enabled: [echo]}\n"+
		"channels: {default: telegram_channel, telegram_channel: {allow_from: [%q]}}\n"+
		"extensions: {offline: {enabled: false}, memory: {enabled: false}, heartbeat: {enabled: false}}\n", config, fmt.Sprint(anna)))
	s.dropIn("echo", "", echoAgent)
	s.probe("caller", "caller", permissions+"\n"+backAtOnce)
	s.env["SWITCHBOARD_CRASH_OFTEN"] = "1"
	return s
}

// schedules has the extension call the scheduler at the next message of a person.
func (s *shop) schedules() {
	s.t.Helper()
	s.world.write(`{"tool": "scheduler/schedule_once", "arguments": {"message": "Drink the tea", "delay_seconds": 1}}`, 0o600,
		"data", "caller", "then")
}

const mayScheduleAtMessages = "permissions: {subscribe: [user.message], tools: [scheduler/*]}"

// scheduledOnce waits for the reminder and checks that there was one.
func (s *shop) scheduledOnce() {
	s.t.Helper()
	reminders := func() (n int) {
		for _, text := range s.texts(anna) {
			if strings.Contains(text, "Drink the tea") && !strings.Contains(text, "possibly sent before") {
				n++
			}
		}
		return n
	}
	s.reaches("the reminder", func() bool { return reminders() > 0 && len(s.pending()) == 0 })
	s.settled()
	for _, topic := range []string{"tool.call.scheduler", "tool.result.caller", "system.user.notify"} {
		if n := s.count(topic); n != 1 {
			s.t.Errorf("%d events of %s, want 1", n, topic)
		}
	}
	if n := reminders(); n != 1 {
		s.t.Errorf("%d reminders: %q", n, s.texts(anna))
	}
	results := s.lines("caller", "results")
	if len(results) == 0 || strings.Contains(results[0], " true ") || results[0] != results[len(results)-1] {
		s.t.Errorf("results %q", results)
	}
	if dead := s.dead(); len(dead) != 0 {
		s.t.Errorf("dead letters: %q", dead)
	}
	if rows := s.query("SELECT id FROM call"); len(rows) != 0 {
		s.t.Errorf("rows of calls are left: %q", rows)
	}
}

// TestAnExtensionSchedulesOnceOverCrashes kills the kernel, the extension that calls and
// the scheduler on one side of each commit.
func TestAnExtensionSchedulesOnceOverCrashes(t *testing.T) {
	t.Parallel()
	whole := newCaller(t, "", mayScheduleAtMessages)
	trace := whole.file("commits")
	whole.env["SWITCHBOARD_CRASH_TRACE"], whole.env["SWITCHBOARD_CRASH_FROM"] = trace, "user.message"
	whole.schedules()
	whole.open()
	whole.telegram.Say(anna, "go")
	whole.scheduledOnce()
	did := whole.linesOf(trace)
	t.Logf("commits:\n%s", strings.Join(did, "\n"))
	for victim, each := range map[string]int{"": 2, "probe caller": 6, "scheduler": 6} {
		for _, point := range fewerPoints(t, len(did), each) {
			t.Run(victim+" "+point, func(t *testing.T) {
				t.Parallel()
				s := newCaller(t, "processes: separate\n", mayScheduleAtMessages)
				s.schedules()
				s.env["SWITCHBOARD_CRASH_VICTIM"] = victim
				s.crashAt(point)
				s.telegram.Say(anna, "go")
				s.scheduledOnce()
			})
		}
	}
}

// TestAnExtensionCallsAToolThatMustNotRunTwice kills the kernel while the tool runs.
func TestAnExtensionCallsAToolThatMustNotRunTwice(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		"slow": "1 true lab/slow was interrupted while it ran: it is unknown whether it had its effect",
		"look": "1 false the result of look",
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			s := newCaller(t, "", "permissions: {tools: [lab/*]}")
			s.probe("lab", "tools", "provides: {tools: true}\n"+backAtOnce)
			s.open()
			s.request("caller", "in", fmt.Sprintf(`{"id": "1", "tool": "lab/%s", "arguments": %s}`, tool, map[string]string{"slow": `{"n": 1}`, "look": "{}"}[tool]))
			s.line(1, "lab", "calls")
			s.line(1, "caller", "out")
			s.restart()
			if tool == "look" {
				s.line(2, "lab", "calls")
			}
			s.release()
			if got := s.line(1, "caller", "results"); !strings.HasPrefix(got, want) {
				t.Errorf("result %q, want %q", got, want)
			}
			s.request("caller", "in", fmt.Sprintf(`{"id": "1", "tool": "lab/%s", "arguments": %s}`, tool, map[string]string{"slow": `{"n": 1}`, "look": "{}"}[tool]))
			s.line(2, "caller", "out")
			s.settled()
			calls := s.lines("lab", "calls")
			if tool == "slow" && len(calls) != 1 || tool == "look" && (len(calls) != 2 || calls[0] != calls[1]) {
				t.Errorf("runs: %q", calls)
			}
		})
	}
}

func TestTheOwnerApprovesTheCallOfAnExtension(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{"yes": "1 false the result of slow", "no": "1 true The user declined"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			s := newCaller(t, "approve: [lab/slow]\n", "permissions: {tools: [lab/*]}")
			s.probe("lab", "tools", "provides: {tools: true}\n"+backAtOnce)
			s.open()
			s.release()
			s.request("caller", "in", `{"id": "1", "tool": "lab/slow", "arguments": {"n": 1}}`)
			if question := s.told(anna, 1).Text; !strings.Contains(question, "caller wants to run lab/slow") {
				t.Errorf("question %q", question)
			}
			s.restart()
			s.telegram.Say(anna, answer)
			if got := s.line(1, "caller", "results"); !strings.HasPrefix(got, want) {
				t.Errorf("result %q, want %q", got, want)
			}
			if calls := s.lines("lab", "calls"); len(calls) != map[string]int{"yes": 1}[answer] {
				t.Errorf("runs: %q", calls)
			}
		})
	}
}

func TestAnExtensionCallsAToolWithoutAGrant(t *testing.T) {
	t.Parallel()
	s := newCaller(t, "", "permissions: {tools: [lab/look]}")
	s.open()
	s.request("caller", "in", `{"id": "1", "tool": "scheduler/schedule_once", "arguments": {"delay_seconds": 1}}`)
	want := `the manifest of "caller" lacks "permissions: {tools: [scheduler/schedule_once]}"`
	if got := s.line(1, "caller", "out"); !strings.Contains(got, want) {
		t.Errorf("commit: %s, want %s", got, want)
	}
}

// TestCallsThatCauseEachOtherEnd has each result lead to the next call, for ever. The limit
// of events that follow one another without a turn of a model ends it, and the rest goes on.
func TestCallsThatCauseEachOtherEnd(t *testing.T) {
	t.Parallel()
	s := newCaller(t, "", "permissions: {tools: [lab/*]}")
	s.probe("looper", "looper", "permissions: {tools: [lab/*]}")
	s.probe("lab", "tools", "provides: {tools: true}")
	s.open()
	s.release()
	s.request("looper", "in", `{"id": "1", "tool": "lab/look", "arguments": {}}`)
	s.eventually("the end of the chain", func() bool { return len(s.dead()) > 0 })
	s.eventually("the owner is told", func() bool {
		return slices.ContainsFunc(s.texts(anna), func(text string) bool { return strings.Contains(text, "An event loop was stopped while looper") })
	})
	s.settled()
	dead := s.dead()
	if len(dead) != 1 || !strings.Contains(dead[0], "tool.result.looper") || !strings.Contains(dead[0], "without a turn of a model") {
		t.Errorf("dead letters: %q", dead)
	}
	if n := len(s.lines("lab", "calls")); n == 0 || n > contract.MaxHops {
		t.Errorf("%d calls, at most %d should follow one another", n, contract.MaxHops)
	}
	s.request("caller", "in", `{"id": "1", "tool": "lab/look", "arguments": {}}`)
	if got := s.line(1, "caller", "results"); got != "1 false the result of look" {
		t.Errorf("afterwards a call has %q", got)
	}
}

// TestTheTraceShowsTheCallOfAnExtension reads the tree from a person's message to the
// result.
func TestTheTraceShowsTheCallOfAnExtension(t *testing.T) {
	t.Parallel()
	s := newCaller(t, "", mayScheduleAtMessages)
	s.schedules()
	s.open()
	s.telegram.Say(anna, "go")
	s.scheduledOnce()
	id := s.query("SELECT 'e' || seq FROM event WHERE topic = 'tool.call.scheduler'")[0]
	got := s.must("trace", id)
	for _, want := range []string{"caller calls scheduler/schedule_once", "Drink the tea"} {
		if !strings.Contains(got, want) {
			t.Errorf("the trace lacks %q:\n%s", want, got)
		}
	}
}
