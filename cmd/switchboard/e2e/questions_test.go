package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// Two ways to have tools of the lab need a person's approval.
const (
	byConfig   = "approve: [lab/*]"
	byManifest = "  approve: [lab/slow]\n"
)

// guarded is a lab where they do, either way.
func guarded(t *testing.T, config, manifest string) (*world, *person) {
	t.Helper()
	w := newWorld(t, withModel)
	w.config("agents: {default: chief}\n" + config)
	w.dropIn("chief", "", chief+manifest)
	w.probe("lab", "tools", "provides: {tools: true}")
	w.start()
	w.state(w.control(), "lab", "active")
	w.release()
	return w, w.attach()
}

// results is what the model was told by the tools in its nth request.
func (w *world) results(n int) string {
	w.t.Helper()
	w.eventually(fmt.Sprintf("request %d to the model", n), func() bool { return w.model.Total() >= n })
	return strings.Join(w.model.Requests()[n-1].Results(), "\n")
}

func TestToolThatNeedsApprovalRunsAfterAYesOnly(t *testing.T) {
	t.Parallel()
	w, p := guarded(t, byConfig, "")
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Say("I left it."))
	p.say("do it")
	if got := p.hears(1); !strings.Contains(got, "Chief wants to run lab/slow:") || !strings.Contains(got, "n: 1") {
		t.Fatalf("the question is %q", got)
	}
	if got := p.ask("no"); got != "I left it." {
		t.Errorf("the terminal shows %q", got)
	}
	if told := w.results(2); !strings.Contains(told, "The user declined") {
		t.Errorf("the model was told %q", told)
	}
	if got := w.text("data", "lab", "calls"); got != "" {
		t.Errorf("the tool ran: %s", got)
	}
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 2}`), openaitest.Say("It is done."))
	if got := p.ask("do it after all"); !strings.Contains(got, "q2") {
		t.Fatalf("the question is %q", got)
	}
	if got := p.ask("Yes."); got != "It is done." {
		t.Errorf("the terminal shows %q", got)
	}
	if told := w.results(4); !strings.Contains(told, "the result of slow") {
		t.Errorf("the model was told %q", told)
	}
	if got := w.lines("lab", "calls"); len(got) != 1 {
		t.Errorf("the tool ran %d times", len(got))
	}
}

// Kernel and agent die while a person is asked. Nobody is asked twice, the tool
// runs once.
func TestApprovalSurvivesTheDeathOfTheKernelAndOfTheAgent(t *testing.T) {
	t.Parallel()
	w, p := guarded(t, byConfig, "")
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Say("It is done."))
	p.say("do it")
	p.hears(1)
	w.settledBut("agent.input.chief")
	w.restart()
	p = w.attach()
	agent := w.extensionProcess("agent:chief")
	kill(agent, syscall.SIGKILL)
	w.eventually("another process of the agent", func() bool { return w.extensionProcess("agent:chief").pid != agent.pid })
	if got := p.ask("yes"); got != "It is done." {
		t.Errorf("the terminal shows %q", got)
	}
	w.settled()
	if got := w.lines("lab", "calls"); len(got) != 1 || w.model.Total() != 2 {
		t.Errorf("the tool ran %d times, the model was asked %d times", len(got), w.model.Total())
	}
	if all := p.texts(); len(all) != 1 {
		t.Errorf("the terminal has shown %q", all)
	}
}

// The kernel dies at one of the commits that follow from a yes. It is asked for
// once, and what was approved runs once.
func TestApprovedToolRunsOnceWhereverTheKernelDies(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before 1", "after 1", "after 2", "after 3", "after 4"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), withModel)
			w.config(fmt.Sprintf("agents: {default: chief}\napprove: [lab/*]\nchannels: {telegram_channel: {allow_from: "+
				"[\"%d\"]}}", anna))
			w.dropIn("chief", "", chief)
			w.probe("lab", "tools", "provides: {tools: true}")
			w.start()
			w.telegramReady()
			w.state(w.control(), "lab", "active")
			w.release()
			w.model.Handle(func(r openaitest.Request) openaitest.Answer {
				if len(r.Results()) == 0 {
					return openaitest.CallTool("lab__slow", `{"n": 1}`)
				}
				return openaitest.Say("It is done.")
			})
			w.telegram.Say(anna, "do it")
			w.told(anna, 1)
			w.settledBut("agent.input.chief")
			w.crash()
			w.env["SWITCHBOARD_CRASH"], w.env["SWITCHBOARD_CRASH_FROM"] = point, "user.message"
			w.start()
			w.telegramReady()
			w.telegram.Say(anna, "yes")
			w.eventually("the death of the kernel", func() bool {
				select {
				case <-w.kernel.ended:
					return true
				default:
					return false
				}
			})
			delete(w.env, "SWITCHBOARD_CRASH")
			w.start()
			w.telegramReady()
			w.told(anna, 2)
			w.settled()
			got := w.texts(anna)
			for i, text := range got[1:] { // one that may have been sent before says so
				if !strings.HasSuffix(text, "It is done.") || i > 0 && !strings.HasPrefix(text, contract.RepeatMark) {
					t.Errorf("Anna is told %q", got)
				}
			}
			told, runs := w.results(w.model.Total()), strings.Count(w.text("data", "lab", "calls"), "slow")
			if known := strings.Contains(told, "the result of slow"); runs > 1 || known && runs != 1 ||
				!known && !strings.Contains(told, "unknown whether") {
				t.Errorf("the tool ran %d times, and the model was told %q", runs, told)
			}
		})
	}
}

// settledBut waits until nothing but a turn is under way.
func (w *world) settledBut(topic string) {
	w.t.Helper()
	w.eventually("nothing under way but "+topic, func() bool {
		left := w.pending()
		return len(left) == 1 && strings.Contains(left[0], topic)
	})
}

func TestNewMessageWithdrawsTheQuestionOfATurn(t *testing.T) {
	t.Parallel()
	w, p := guarded(t, "", byManifest)
	w.model.Queue(openaitest.CallTool("lab__slow", `{"n": 1}`), openaitest.Say("The one in the cellar."),
		openaitest.Say("Then I leave it."))
	p.say("do it")
	p.hears(1)
	p.say("which lab do you mean?")
	p.hearsLike("The one in the cellar.")
	p.hearsLike("Then I leave it.")
	w.settled()
	if told := fmt.Sprint(w.model.Requests()[2].Messages); !strings.Contains(told,
		"interrupted: the user has written something new") {
		t.Errorf("the model was told %s", told)
	}
	if got := p.ask("/approve q1"); !strings.Contains(got, "q1 is closed") {
		t.Errorf("the terminal shows %q", got)
	}
	if got := w.text("data", "lab", "calls"); got != "" {
		t.Errorf("the tool ran: %s", got)
	}
}

// Anna is asked in Telegram; the kernel dies; Boris tries; she answers at the
// terminal.
func TestQuestionIsAnsweredOnAnotherChannelByItsPersonAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.start()
	w.telegramReady()
	w.model.Queue(openaitest.CallTool("ask_user", map[string]any{"question": "Which day?",
		"options": []string{"Monday", "Friday"}}), openaitest.Say("Friday it is."))
	w.telegram.Say(anna, "book a table")
	if got := w.told(anna, 1).Text; !strings.Contains(got, "Which day?") || !strings.Contains(got, "2. Friday") ||
		!strings.Contains(got, "q1") {
		t.Fatalf("the question is %q", got)
	}
	w.settledBut("agent.input.orchestrator")
	w.restart()
	w.telegramReady()
	w.telegram.Say(boris, "/answer q1 1")
	if got := w.told(boris, 1).Text; !strings.Contains(got, "no question q1 for you here") {
		t.Errorf("Boris is told %q", got)
	}
	p := w.attach()
	if got := p.ask("/questions"); !strings.Contains(got, "q1: Which day?") {
		t.Errorf("the terminal shows %q", got)
	}
	if got := p.ask("/answer 2"); !strings.Contains(got, "q1 is answered: Friday") {
		t.Errorf("the terminal shows %q", got)
	}
	if got := w.told(anna, 2).Text; !strings.Contains(got, "Question q1 was answered") {
		t.Errorf("Anna is told %q", got)
	}
	if got := w.told(anna, 3).Text; got != "Friday it is." {
		t.Errorf("Anna is told %q", got)
	}
	if told := w.results(2); !strings.Contains(told, `"answer":"Friday"`) {
		t.Errorf("the model was told %q", told)
	}
	w.settled()
	if got := w.texts(anna); len(got) != 3 {
		t.Errorf("Anna has %q", got)
	}
}

func TestExtensionAsksAndLearnsTheEndOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probe("asker", "asker", "permissions: {publish: [system.user.ask], subscribe: [asker.answered]}")
	w.start()
	p := w.attach()
	asks := func(ref, more string) {
		w.request("asker", "in",
			fmt.Sprintf(`{"topic": "system.user.ask", "payload": {"text": "Deploy %s?", "kind": "approve", "ref": %q, "topic": "asker.answered"%s}}`, ref, ref, more))
	}
	asks("one", "")
	p.hearsLike("Deploy one?")
	w.restart()
	p = w.attach()
	p.say("да")
	if got := w.line(1, "asker", "answers"); !strings.Contains(got, `"ref":"one"`) ||
		!strings.Contains(got, `"answer":"yes"`) {
		t.Errorf("the asker is told %s", got)
	}
	asks("two", `, "expires_seconds": 1`)
	if got := w.line(2, "asker", "answers"); !strings.Contains(got, `"ref":"two"`) ||
		!strings.Contains(got, `"outcome":"expired"`) {
		t.Errorf("the asker is told %s", got)
	}
	p.hearsLike("wasn't answered in time: Deploy two?")
	w.settled()
	if n := w.count("asker.answered"); n != 2 {
		t.Errorf("%d answers", n)
	}
}

func TestSendingToAllChannelsIsApprovedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram()) // the offline model
	w.start()
	w.telegramReady()
	p := w.attach()
	if got := p.ask(`send "fire" to all channels`); !strings.Contains(got, "core/send_to_all_channels") {
		t.Fatalf("the terminal shows %q", got)
	}
	p.say("yes")
	p.hearsLike("Delivered to telegram_channel.")
	if got := w.told(anna, 1).Text; got != "fire" {
		t.Errorf("Anna is told %q", got)
	}
}
