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

// play runs f in a bubble with its own time.
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
	time.Sleep(time.Millisecond) // no process is started in no time
	ctx, stop := context.WithCancel(g.t.Context())
	g.x, g.ctx, g.stop = g.extension(ctx), ctx, stop
	x := g.x
	go x.sweep(ctx)
}

type fields = map[string]any

func (g *game) request(session, id, name string, arguments fields) sdk.ToolCall {
	raw, _ := json.Marshal(arguments)
	return sdk.ToolCall{ID: id, Name: ID + "/" + name, Session: session, Agent: "orchestrator", Arguments: raw, ReplyTo: "the chat"}
}

func (g *game) tool(name string) func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
	all := g.x.tools()
	return all[slices.IndexFunc(all, func(tool sdk.Tool) bool { return tool.Name == name })].Call
}

// try makes a call as the kernel does: again when it conflicts.
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

// does makes a call of an agent: of main, or of a worker by its name.
func (g *game) does(who, name string, arguments fields) string {
	g.t.Helper()
	content, err := g.try(g.sessionOf(who), "c1", name, arguments)
	if err != nil {
		g.t.Fatalf("%s: %s %v: %v", who, name, arguments, err)
	}
	return content
}

// fails makes a call that is refused.
func (g *game) fails(who, name string, arguments fields, words string) {
	g.t.Helper()
	content, err := g.try(g.sessionOf(who), "c1", name, arguments)
	if err == nil || !strings.Contains(err.Error(), words) {
		g.t.Errorf("%s: %s %v: %v %s, want an error with %q", who, name, arguments, err, content, words)
	}
}

// types gives a command as a person.
func (g *game) types(name string, arguments fields) string {
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

// push queues tasks of an agent by their names.
func (g *game) push(who string, names ...string) {
	g.t.Helper()
	for _, name := range names {
		g.does(who, "push", fields{"name": name, "prompt": "Do " + name + "."})
	}
}

// later makes a call that waits; what it says comes over the channel.
func (g *game) later(who, name string, arguments fields) <-chan string {
	said, session := make(chan string, 1), g.sessionOf(who)
	g.mu.Lock()
	ctx, cancel := context.WithCancel(g.ctx)
	s := g.sessions[session]
	s.asleep = cancel
	g.mu.Unlock()
	call := g.tool(name)
	go func() {
		for {
			result, err := call(ctx, g.request(session, "c2", name, arguments))
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

// silent says that nothing has come over a channel.
func (g *game) silent(said <-chan string) {
	g.t.Helper()
	synctest.Wait()
	select {
	case text := <-said:
		g.t.Errorf("a call that had to wait has returned: %s", text)
	default:
	}
}

// says is what has come over a channel, with words in it.
func (g *game) says(said <-chan string, words ...string) string {
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

// settle has the extension handle all that has happened.
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
		if errors.Is(err, contract.ErrConflict) { // again, behind what has happened meanwhile
			g.mu.Lock()
			g.events = append(g.events, e)
			g.mu.Unlock()
		} else if err != nil {
			g.t.Fatalf("handling %s %s: %v", e.Topic, e.Payload, err)
		}
	}
}

// works has a worker begin with its task, or main with what waits for it.
func (g *game) works(who string) *busv1.Input {
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

// ends has the turn of an agent end.
func (g *game) ends(who, outcome, text string) {
	g.t.Helper()
	g.works(who)
	g.mu.Lock()
	s := g.sessions[root]
	if who != main {
		s = g.worker(who)
	}
	g.world.says(s, outcome, text)
	g.mu.Unlock()
	g.settle()
}

// done has workers end well.
func (g *game) done(names ...string) {
	g.t.Helper()
	for _, name := range names {
		g.ends(name, contract.OutcomeOK, name+" is done")
	}
}

// task is a task by its name.
func (g *game) task(name string) Task { return stored[Task](g.world, taskKey(root, name)) }

// states says in which states tasks are.
func (g *game) states(want string, names ...string) {
	g.t.Helper()
	for _, name := range names {
		if got := g.task(name).State; got != want {
			g.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// received reads what receive or check has given.
func (g *game) received(content string) []Message {
	g.t.Helper()
	var m messages
	if err := json.Unmarshal([]byte(content), &m); err != nil {
		g.t.Errorf("%s: %v", content, err)
	}
	return m.Messages
}

// senders is who has sent of messages.
func senders(all []Message) (names []string) {
	for _, m := range all {
		names = append(names, m.From)
	}
	return names
}

// collects says from whom an agent gets something.
func (g *game) collects(who, tool string, arguments fields, want ...string) {
	g.t.Helper()
	if got := senders(g.received(g.does(who, tool, arguments))); !slices.Equal(got, want) {
		g.t.Errorf("%s: %s %v gives something of %q, want %q", who, tool, arguments, got, want)
	}
}

// clean says that nothing is stored of a prefix.
func (g *game) clean(prefixes ...string) {
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

// notices is the notices that wait for main.
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

// told is what people were told so far.
func (g *game) told() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.notified)
}

// tally is how much was read, written and refused.
func (g *game) tally() (read, written, bytes, conflicts int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.read, g.written, g.bytes, g.conflicts
}

// reset begins the tally, and what people are told, anew, once what runs beside
// the calls has come to rest: it reads, too.
func (g *game) reset() {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trips = 0
	g.read, g.written, g.bytes, g.conflicts, g.notified = 0, 0, 0, 0, nil
}
