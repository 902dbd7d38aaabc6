package tasks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// stopEverything returns the event of a /stop now, which the extension has not handled.
func (g *game) stopEverything(language string) sdk.Event {
	payload, err := json.Marshal(contract.ConversationStopped{
		Conversation: "the chat", Sessions: []string{"s999", root}, Language: language,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	at := time.Now()
	time.Sleep(time.Millisecond)
	return sdk.Event{ID: "e9", Topic: contract.TopicStopped, Payload: payload, CreatedAt: at}
}

// handles lets the extension handle an event, and what follows from that.
func (g *game) handles(e sdk.Event) {
	g.t.Helper()
	g.mu.Lock()
	g.events = append(g.events, e)
	g.mu.Unlock()
	g.settle()
}

// inputs returns what waits for main, by kind.
func (g *game) inputs(kind string) (all []*busv1.Input) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, in := range g.sessions[root].pending {
		if in.GetKind() == kind {
			all = append(all, in)
		}
	}
	return all
}

// A /stop ends the tasks that were given before it, with their children, and says so
// once. No result of theirs starts a turn.
func TestStopEndsTheTasksOfTheConversation(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a", "b", "c")
		g.call(main, "push", fields{"name": "d", "prompt": "Do d.", "deliver": "announce"})
		g.call(main, "run", fields{"count": 2})
		g.beginTurn("a")
		g.push("a", "a1", "a2")
		g.call("a", "run", fields{"count": 1})
		stop := g.stopEverything("ru")
		g.push(main, "later")
		g.handles(stop)
		if got := g.sentToPeople(); len(got) != 1 || !strings.Contains(got[0], "Отменено 6 задач: a, a1, a2, b, c, d.") ||
			!strings.Contains(got[0], "the chat") {
			t.Errorf("people get %q", got)
		}
		for _, name := range []string{"a", "a1", "a2", "b", "c", "d"} {
			if task := g.task(name); task.State != Finished || task.Outcome != Cancelled {
				t.Errorf("task %s: %+v", name, task)
			}
		}
		if got := slices.Concat(g.inputs(contract.InputNotice), g.inputs(contract.InputResult)); len(got) > 0 {
			t.Errorf("main gets %v", got)
		}
		if got := g.inputs(contract.InputRecord); len(got) != 1 || !strings.Contains(got[0].GetText(), "a, a1, a2, b, c, d.") {
			t.Errorf("main knows %v", got)
		}
		g.push(main, "last")
		g.call(main, "run", fields{"count": 1})
		g.states(Running, "later")
		g.states(Queued, "last")
		g.finishTasks("later")
		g.states(Running, "last")

		g.handles(stop) // a crash before the acknowledgement would repeat it
		g.states(Running, "last")
		if got := g.sentToPeople(); len(got) != 1 {
			t.Errorf("people get %q", got)
		}
	})
}

func TestStopWithoutTasksSaysNothing(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		g.finishTasks("a")
		g.beginTurn(main)
		g.endTurn(main, contract.OutcomeOK, "")
		g.handles(g.stopEverything(""))
		if got := g.sentToPeople(); len(got) > 0 || len(g.inputs(contract.InputRecord)) > 0 {
			t.Errorf("people get %q", got)
		}
	})
}

// Many tasks are cancelled in several commits.
func TestStopEndsManyTasks(t *testing.T) {
	play(t, func(g *game) {
		for i := range maxStopped + 10 {
			g.push(main, fmt.Sprintf("t%03d", i))
		}
		g.handles(g.stopEverything(""))
		got := g.sentToPeople()
		if len(got) != 2 || !strings.Contains(got[0], "Cancelled 200 tasks: t000, ") ||
			!strings.Contains(got[0], "t019 and 180 more.") || !strings.Contains(got[1], "Cancelled 10 tasks: ") {
			t.Errorf("people get %q", got)
		}
		g.noRows(queuedPrefix)
	})
}

// Results that no notice has named when a person stops main start no turn. Main gets to
// know of them, and can receive them.
func TestResultsOfBeforeAStopStartNoTurn(t *testing.T) {
	play(t, func(g *game) {
		g.push(main, "a")
		g.call(main, "run", nil)
		g.mu.Lock()
		g.sessions[root].running = &busv1.Input{Kind: contract.InputUser}
		g.mu.Unlock()
		g.finishTasks("a")
		g.mu.Lock()
		s := g.sessions[root]
		s.running, s.asked = nil, false
		payload, _ := json.Marshal(contract.SessionIdle{Session: root, Stopped: true})
		g.mu.Unlock()
		g.handles(sdk.Event{Topic: TopicIdle, Payload: payload})
		if got := g.inputs(contract.InputRecord); len(got) != 1 || !strings.Contains(got[0].GetText(), "Finished: a.") ||
			len(g.notices()) > 0 {
			t.Errorf("main gets %v and %q", got, g.notices())
		}
		g.receives(main, "receive", nil, "a")
	})
}
