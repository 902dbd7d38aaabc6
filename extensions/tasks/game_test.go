package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// game is a world with one process of the extension, played step by step.
type game struct {
	*world
	x    *tasks
	ctx  context.Context
	stop context.CancelFunc
}

// play runs f in a synctest bubble.
func play(t *testing.T, f func(g *game)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &game{world: newWorld(t), ctx: t.Context(), stop: func() {}}
		g.restart()
		f(g)
		g.stop()
		synctest.Wait()
	})
}

// restart kills the process and starts another one.
func (g *game) restart() {
	g.stop()
	synctest.Wait()
	time.Sleep(time.Millisecond) // starting a process takes time
	ctx, stop := context.WithCancel(g.t.Context())
	g.x, g.ctx, g.stop = g.extension(ctx), ctx, stop
	x := g.x
	go x.runPeriodic(ctx)
}

type fields = map[string]any

func (g *game) request(session, id, name string, arguments fields) sdk.ToolCall {
	raw, _ := json.Marshal(arguments)
	return sdk.ToolCall{ID: id, Name: ID + "/" + name, Session: session, Agent: "orchestrator", Arguments: raw,
		ReplyTo: "the chat"}
}

func (g *game) tool(name string) func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
	all := g.x.tools()
	return all[slices.IndexFunc(all, func(tool sdk.Tool) bool { return tool.Name == name })].Call
}

// try makes a call like the kernel, which repeats it after a conflict.
func (g *game) try(session, id, name string, arguments fields) (string, error) {
	for {
		result, err := g.tool(name)(g.ctx, g.request(session, id, name, arguments))
		if err == nil {
			err = g.apply(result.Effects, nil)
		}
		if !errors.Is(err, contract.ErrConflict) {
			return result.Content, err
		}
	}
}

// call makes a call as main, or as a worker by name.
func (g *game) call(who, name string, arguments fields) string {
	g.t.Helper()
	content, err := g.try(g.sessionOf(who), "c1", name, arguments)
	if err != nil {
		g.t.Fatalf("%s: %s %v: %v", who, name, arguments, err)
	}
	return content
}

// callFails makes a call that must be refused.
func (g *game) callFails(who, name string, arguments fields, words string) {
	g.t.Helper()
	content, err := g.try(g.sessionOf(who), "c1", name, arguments)
	if err == nil || !strings.Contains(err.Error(), words) {
		g.t.Errorf("%s: %s %v: %v %s, want an error with %q", who, name, arguments, err, content, words)
	}
}

// command gives a command as a person.
func (g *game) command(name string, arguments fields) string {
	g.t.Helper()
	content, err := g.try(root, "e1", name, arguments)
	if err != nil {
		g.t.Fatalf("/%s %v: %v", name, arguments, err)
	}
	return content
}

func (g *game) sessionOf(who string) string {
	if who == main {
		return root
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.worker(who).id
}

// push queues tasks of an agent by name.
func (g *game) push(who string, names ...string) {
	g.t.Helper()
	for _, name := range names {
		g.call(who, "push", fields{"name": name, "prompt": "Do " + name + "."})
	}
}

// start makes a call in the background; its result arrives on the channel.
func (g *game) start(who, name string, arguments fields) <-chan string {
	return g.startCall("c2", who, name, arguments)
}

func (g *game) startCall(id, who, name string, arguments fields) <-chan string {
	said, session := make(chan string, 1), g.sessionOf(who)
	g.mu.Lock()
	ctx, cancel := context.WithCancel(g.ctx)
	s := g.sessions[session]
	s.asleep = cancel
	g.mu.Unlock()
	call := g.tool(name)
	go func() {
		for {
			result, err := call(ctx, g.request(session, id, name, arguments))
			if err == nil {
				err = g.apply(result.Effects, nil)
			}
			if err == nil {
				said <- result.Content
			} else if !errors.Is(err, contract.ErrConflict) {
				said <- "error: " + err.Error()
			} else {
				continue
			}
			return
		}
	}()
	synctest.Wait()
	return said
}

// stillWaits checks that a call has not returned.
func (g *game) stillWaits(said <-chan string) {
	g.t.Helper()
	synctest.Wait()
	select {
	case text := <-said:
		g.t.Errorf("a call that had to wait has returned: %s", text)
	default:
	}
}

// returns checks that a call has returned a text with words in it.
func (g *game) returns(said <-chan string, words ...string) string {
	g.t.Helper()
	synctest.Wait()
	select {
	case text := <-said:
		for _, word := range words {
			if !strings.Contains(text, word) {
				g.t.Errorf("a call says %s, want %q in it", text, word)
			}
		}
		return text
	default:
		g.t.Fatalf("a call waits that had to return, with %q", words)
		return ""
	}
}

// settle lets the extension handle all events.
func (g *game) settle() {
	g.t.Helper()
	for {
		g.mu.Lock()
		if len(g.events) == 0 {
			g.mu.Unlock()
			synctest.Wait()
			return
		}
		e := g.events[0]
		g.events = g.events[1:]
		g.mu.Unlock()
		effects, err := g.x.handle(g.ctx, e)
		if err == nil {
			err = g.apply(effects, nil)
		}
		if errors.Is(err, contract.ErrConflict) { // retried after the other events
			g.mu.Lock()
			g.events = append(g.events, e)
			g.mu.Unlock()
		} else if err != nil {
			g.t.Fatalf("handling %s %s: %v", e.Topic, e.Payload, err)
		}
	}
}

// beginTurn begins the turn of a worker or of main with its next input.
func (g *game) beginTurn(who string) *busv1.Input {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[root]
	if who != main {
		s = g.worker(who)
	}
	if s.running == nil {
		if len(s.pending) == 0 {
			g.t.Fatalf("%s has nothing to do", who)
		}
		s.running, s.pending = s.pending[0], s.pending[1:]
	}
	return s.running
}

// endTurn ends the turn of an agent.
func (g *game) endTurn(who, outcome, text string) {
	g.t.Helper()
	g.beginTurn(who)
	g.mu.Lock()
	s := g.sessions[root]
	if who != main {
		s = g.worker(who)
	}
	g.world.endTurn(s, outcome, text)
	g.mu.Unlock()
	g.settle()
}

// finishTasks ends the turns of workers with success.
func (g *game) finishTasks(names ...string) {
	g.t.Helper()
	for _, name := range names {
		g.endTurn(name, contract.OutcomeOK, name+" is done")
	}
}

// task returns a task by name.
func (g *game) task(name string) Task { return stored[Task](g.world, taskKey(root, name)) }

// states checks the state of tasks.
func (g *game) states(want string, names ...string) {
	g.t.Helper()
	for _, name := range names {
		if got := g.task(name).State; got != want {
			g.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// received decodes the result of receive or check.
func (g *game) received(content string) []Message {
	g.t.Helper()
	var m messages
	if err := json.Unmarshal([]byte(content), &m); err != nil {
		g.t.Errorf("%s: %v", content, err)
	}
	return m.Messages
}

// senders returns the senders of messages.
func senders(all []Message) (names []string) {
	for _, m := range all {
		names = append(names, m.From)
	}
	return names
}

// receives checks whose messages an agent gets.
func (g *game) receives(who, tool string, arguments fields, want ...string) {
	g.t.Helper()
	if got := senders(g.received(g.call(who, tool, arguments))); !slices.Equal(got, want) {
		g.t.Errorf("%s: %s %v gives something of %q, want %q", who, tool, arguments, got, want)
	}
}

// noRows checks that prefixes have no rows.
func (g *game) noRows(prefixes ...string) {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, v := range g.kv {
		for _, prefix := range prefixes {
			if strings.HasPrefix(key, prefix) {
				g.t.Errorf("%s is still there: %s", key, v.Value)
			}
		}
	}
}

// notices returns the pending notices of main.
func (g *game) notices() (texts []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, in := range g.sessions[root].pending {
		if in.GetKind() == contract.InputNotice {
			texts = append(texts, in.GetText())
		}
	}
	return texts
}

// sentToPeople returns the messages to people so far.
func (g *game) sentToPeople() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.notified)
}

// tally returns what was read, written and refused.
func (g *game) tally() (read, written, bytes, conflicts int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read, g.written, g.bytes, g.conflicts
}

// resetTally resets the tally and the messages to people, once background work,
// which reads too, has stopped.
func (g *game) resetTally() {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trips = 0
	g.read, g.written, g.bytes, g.conflicts, g.notified = 0, 0, 0, 0, nil
}
