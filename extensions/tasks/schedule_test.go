package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/sdk"
)

// player acts at random as people, agents and crashes.
type player struct {
	*world
	rand *rand.Rand
	ctx  context.Context

	ext      *tasks
	stop     context.CancelFunc // of the process
	calls    int
	draining bool // no more crashes and no new work
	wg       sync.WaitGroup

	gotMu   sync.Mutex
	results map[string]int // by task id
	said    map[string]int // messages, each said once
}

// TestRandomSchedules lets agents push, run, send, collect, wait and cancel at
// random, with processes killed between any two steps, and checks that each task
// finishes once, that each result is delivered once, that each message is
// collected once, that no run has more workers than places, and that nothing
// waits forever.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	first := seed.Number(t)
	for i := range uint64(24) {
		t.Run(fmt.Sprint("seed ", first+i), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := &player{
					world: newWorld(t), rand: rand.New(rand.NewPCG(first+i, 7)), ctx: ctx,
					results: map[string]int{}, said: map[string]int{},
				}
				p.start()
				for range 300 {
					p.step()
				}
				p.finish()
				p.checkEnd()
				p.stop()
				cancel()
				p.wg.Wait()
			})
		})
	}
}

func (p *player) start() {
	ctx, stop := context.WithCancel(p.ctx)
	t := p.extension(ctx)
	p.mu.Lock()
	p.ext, p.stop = t, stop
	p.mu.Unlock()
	p.wg.Go(func() { t.runPeriodic(ctx) })
}

// crash kills the process of the extension.
func (p *player) crash() {
	p.stop()
	synctest.Wait()
	p.start()
}

func (p *player) step() {
	if p.rand.IntN(3) == 0 {
		time.Sleep(time.Duration(p.rand.IntN(400)) * time.Millisecond)
	}
	switch n := p.rand.IntN(20); {
	case n < 6:
		p.deliver()
	case n < 9:
		p.workerBegins()
	case n < 12:
		p.workerEnds(p.outcome())
	case n == 12 && p.rand.IntN(4) == 0:
		p.crash()
	default:
		p.act()
	}
}

func (p *player) outcome() string {
	if p.rand.IntN(3) > 0 {
		return contract.OutcomeOK
	}
	return []string{contract.OutcomeError, contract.OutcomeTimeout, contract.OutcomeDead,
		contract.OutcomeCapped}[p.rand.IntN(4)]
}

// pick returns a random session for which good is true, or nil.
func (p *player) pick(good func(*session) bool) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*session
	for i := range len(p.sessions) {
		if s := p.sessions[fmt.Sprintf("s%d", i+1)]; s != nil && good(s) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[p.rand.IntN(len(all))]
}

func (p *player) workerBegins() {
	s := p.pick(func(s *session) bool { return len(s.pending) > 0 && s.running == nil && !s.busy })
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.running, s.pending = s.pending[0], s.pending[1:]
	if s.id == root {
		switch s.running.GetKind() {
		case contract.InputResult:
			var r Result
			if err := json.Unmarshal([]byte(s.running.GetText()), &r); err != nil {
				p.t.Error(err)
			}
			p.collected(Message{Result: &r})
		case contract.InputRecord:
			s.running = nil
		}
	}
}

func (p *player) workerEnds(outcome string) {
	s := p.pick(func(s *session) bool { return s.running != nil && !s.busy })
	if s == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endTurn(s, outcome, "the end")
}

// deliver gives the extension an event, whose handling may fail.
func (p *player) deliver() {
	p.mu.Lock()
	if len(p.events) == 0 {
		p.mu.Unlock()
		return
	}
	i := p.rand.IntN(len(p.events))
	e := p.events[i]
	p.events = append(p.events[:i:i], p.events[i+1:]...)
	p.mu.Unlock()
	effects, err := p.ext.handle(p.ctx, e)
	if err == nil && !p.draining && p.rand.IntN(8) == 0 {
		p.act() // a concurrent change
	}
	if err == nil && !p.draining && p.rand.IntN(10) == 0 {
		err = errors.New("killed")
		p.crash()
	}
	if err == nil {
		err = p.apply(effects, nil)
	}
	if err != nil {
		p.mu.Lock()
		p.events = append(p.events, e) // again
		p.mu.Unlock()
	}
}

// act makes a random agent or person call a tool.
func (p *player) act() {
	s := p.pick(func(s *session) bool { return s.id == root || !s.busy && s.running != nil })
	if s == nil {
		return
	}
	p.mu.Lock()
	busy := s.busy
	p.mu.Unlock()
	names := []string{main, "task-1", "task-2", "task-3", "task-5", "task-8", "a", "b", "c"}
	name := names[p.rand.IntN(len(names))]
	timeout := float64(p.rand.IntN(30))/10 + 0.1
	switch n := p.rand.IntN(12); {
	case n < 3:
		args := map[string]any{"prompt": "work"}
		if p.rand.IntN(3) == 0 && name != main {
			args["name"] = name
		}
		if p.rand.IntN(6) == 0 {
			args["timeout"] = timeout
		}
		if p.rand.IntN(8) == 0 && s.id == root {
			args["deliver"] = announce
		}
		p.call(s, p.ext.push, args)
	case n < 5:
		p.call(s, p.ext.run, map[string]any{"count": p.rand.IntN(4)})
	case n < 6:
		p.mu.Lock()
		p.calls++
		text := fmt.Sprintf("message %d", p.calls)
		p.mu.Unlock()
		p.call(s, p.ext.send, map[string]any{"to": name, "message": text})
	case n < 8:
		args := map[string]any{"order": []string{"fifo", "lifo"}[p.rand.IntN(2)]}
		if p.rand.IntN(2) == 0 {
			args["from"] = name
		}
		p.call(s, p.ext.check, args)
	case n < 10 && !busy:
		args := map[string]any{}
		if p.rand.IntN(2) == 0 {
			args["from"] = name
		}
		if p.rand.IntN(2) == 0 {
			args["timeout"] = timeout
		}
		p.receive(s, args)
	case n < 11:
		p.call(s, p.ext.taskCancel, map[string]any{"name": name})
	default:
		p.call(s, p.ext.queueRemove, map[string]any{"name": name})
	}
}

type tool = func(context.Context, sdk.ToolCall) (sdk.ToolResult, error)

func (p *player) request(s *session, args map[string]any) sdk.ToolCall {
	raw, _ := json.Marshal(args)
	return sdk.ToolCall{ID: "c1", Session: s.id, Agent: s.agent, Arguments: raw}
}

// call runs a tool and commits its result, as the kernel does.
func (p *player) call(s *session, f tool, args map[string]any) {
	p.mu.Lock()
	turn := s.running
	p.mu.Unlock()
	for range 10 {
		result, err := f(p.ctx, p.request(s, args))
		if err != nil {
			return
		}
		if err = p.commit(s, turn, result); !errors.Is(err, contract.ErrConflict) {
			return
		}
	}
}

var errClosed = errors.New("the call is closed")

func (p *player) commit(s *session, turn *busv1.Input, result sdk.ToolResult) error {
	err := p.apply(result.Effects, func() error {
		if s.running != turn && s.id != root {
			return errClosed
		}
		return nil
	})
	if err != nil {
		return err
	}
	var m messages
	if json.Unmarshal([]byte(result.Content), &m) == nil {
		for _, message := range m.Messages {
			p.collected(message)
		}
	}
	return nil
}

// collected records a delivered message.
func (p *player) collected(m Message) {
	p.gotMu.Lock()
	defer p.gotMu.Unlock()
	if m.Result != nil {
		if p.results[m.TaskID]++; p.results[m.TaskID] > 1 {
			p.t.Errorf("the result of %s is delivered twice", m.TaskID)
		}
		return
	}
	if p.said[m.Message]++; p.said[m.Message] > 1 {
		p.t.Errorf("%q is collected twice", m.Message)
	}
}

// receive runs receive in the background, and repeats it when its process ends.
func (p *player) receive(s *session, args map[string]any) {
	p.mu.Lock()
	ctx, cancel := context.WithCancel(p.ctx)
	s.busy, s.asleep = true, cancel
	turn := s.running
	p.mu.Unlock()
	p.wg.Go(func() {
		defer cancel()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if s.running == turn {
				s.busy, s.asleep = false, nil
			}
		}()
		for ctx.Err() == nil {
			p.mu.Lock()
			t := p.ext
			p.mu.Unlock()
			of, done := context.WithCancel(ctx)
			stop := context.AfterFunc(t.ctx, done)
			result, err := t.receive(of, p.request(s, args))
			stop()
			done()
			switch {
			case err != nil && t.ctx.Err() != nil && ctx.Err() == nil:
				time.Sleep(time.Millisecond) // the next process repeats it
				continue
			case err != nil:
				return
			}
			if err := p.commit(s, turn, result); !errors.Is(err, contract.ErrConflict) {
				return
			}
		}
	})
}

// finish runs until nothing is left to do.
func (p *player) finish() {
	for i := range 600 {
		if i == 300 {
			p.draining = true
			time.Sleep(workerTimeout) // only main could still write to the rest
		}
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		p.workerBegins()
		p.workerEnds(contract.OutcomeOK)
		p.mu.Lock()
		waiting, busy := len(p.events), p.sessions[root].busy
		p.mu.Unlock()
		for range waiting {
			p.deliver()
		}
		if q := stored[queue](p.world, queueKey(root, main)); p.queued() && !q.Active && !busy {
			p.call(p.sessions[root], p.ext.run, map[string]any{"count": 2})
		}
		if p.quiet() {
			break
		}
	}
	// The inbox of main is collected last.
	for range 100 {
		p.call(p.sessions[root], p.ext.check, map[string]any{})
	}
}

func (p *player) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.busy || s.running != nil || len(s.pending) > 0 {
			return false
		}
	}
	return len(p.events) == 0 && !p.hasRows(queuedPrefix)
}

// queued reports whether tasks are queued.
func (p *player) queued() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hasRows(queuedOf(root, main))
}

func (w *world) hasRows(prefix string) bool {
	for key := range w.kv {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func (p *player) checkEnd() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		if s.busy || s.running != nil || len(s.pending) > 0 {
			p.t.Logf("%+v waits: %+v, queue %s", s, *p.ext.waiters[root][0], p.kv[queueKey(root, main)].Value)
			p.t.Errorf("session %s (%s) has not come to its end", s.id, s.key)
		}
	}
	for key, v := range p.kv {
		for _, prefix := range []string{inboxPrefix, orderPrefix, unnoticedPrefix, noticedPrefix, queuedPrefix,
			workingPrefix, deferredPrefix} {
			if strings.HasPrefix(key, prefix) {
				p.t.Errorf("%s was not cleaned up: %s", key, v.Value)
			}
		}
	}
	removed := func(id string) bool { _, there := p.kv[promptPrefix+id]; return !there }
	for id, task := range p.history {
		if removed(id) {
			continue
		}
		if task.State != Finished {
			p.t.Errorf("%s is %s for ever: %+v", task.Name, task.State, task)
		}
		if task.Requester == main && p.results[id] != 1 {
			p.t.Errorf("the result of %s was delivered %d times: %+v", task.Name, p.results[id], task)
		}
	}
}
