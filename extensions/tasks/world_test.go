package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// root is the session of the conversation.
const root = "s1"

// world is a kernel in memory: versioned rows, sessions with their inputs, and
// events that are not handled yet.
type world struct {
	t testing.TB

	mu        sync.Mutex
	kv        map[string]sdk.Value
	keys      []string        // of kv, sorted
	atWork    map[string]work // by key of the queue row
	version   int64
	sessions  map[string]*session // by id
	byKey     map[string]*session
	known     map[string]bool // dedupe keys
	events    []sdk.Event     // not handled yet
	notified  []string
	made      []*busv1.SessionEnsure
	history   map[string]Task // each task as last stored
	trips     int             // calls of Get and Page
	read      int             // rows
	written   int             // rows; bytes counts their size
	bytes     int
	conflicts int
	agents    []listedAgent
}

type session struct {
	id, agent, key string
	pending        []*busv1.Input
	running        *busv1.Input
	busy           bool // a tool call is running
	asleep         context.CancelFunc
	asked          bool // an idle event was requested
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, kv: map[string]sdk.Value{}, atWork: map[string]work{}, sessions: map[string]*session{},
		byKey: map[string]*session{}, known: map[string]bool{}, history: map[string]Task{},
		agents: []listedAgent{{"broken", false}, {"helper", true}, {"orchestrator", true}},
	}
	w.sessions[root] = &session{id: root, agent: "orchestrator", key: "chan"}
	return w
}

// extension starts a process of the extension.
func (w *world) extension(ctx context.Context) *tasks {
	t := newTasks()
	t.config = config{Depth: 3, Concurrency: 2, PerRoot: 20}
	if err := t.resume(ctx, w); err != nil {
		w.t.Error(err)
	}
	return t
}

func (w *world) Get(_ context.Context, key string) (sdk.Value, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trips++
	w.read++
	v := w.kv[key]
	v.Key = key
	return v, nil
}

func (w *world) Page(_ context.Context, prefix, after string, most int) (page []sdk.Value, more bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trips++
	if most <= 0 {
		most = 10 // forces several pages
	}
	if !utf8.ValidString(prefix + after) {
		return nil, false, fmt.Errorf("%w: the key %q is no UTF-8", contract.ErrInvalid, after)
	}
	i, _ := slices.BinarySearch(w.keys, max(prefix, after))
	for ; i < len(w.keys) && strings.HasPrefix(w.keys[i], prefix); i++ {
		switch {
		case w.keys[i] <= after:
			continue
		case len(page) == most:
			return page, true, nil
		}
		w.read++
		page = append(page, w.kv[w.keys[i]])
	}
	return page, false, nil
}

func (w *world) Session(_ context.Context, id string) (key string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sessions[id]; s != nil {
		return s.key, nil
	}
	return "", contract.ErrNotFound
}

func (w *world) Ensure(ctx context.Context, agent, key, title string) (id string, err error) {
	err = w.Commit(ctx, sdk.Raw(&busv1.SessionEnsure{Agent: agent, Key: key, Title: title}))
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byKey[agent+" "+key].id, err
}

func (w *world) Reach(_ context.Context, person string) (string, error) {
	return "handle of " + person, nil
}

func (w *world) Agents(context.Context) ([]listedAgent, error) { return w.agents, nil }

func (w *world) Busy(_ context.Context, agent, key string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.byKey[agent+" "+key]
	return s != nil && (s.running != nil || len(s.pending) > 0), nil
}

func (w *world) Commit(_ context.Context, effects ...sdk.Effect) error { return w.apply(effects, nil) }

// apply commits effects, all or none.
func (w *world) apply(effects sdk.Effects, allowed func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if allowed != nil {
		if err := allowed(); err != nil {
			return err
		}
	}
	var all []*busv1.Effect
	for _, e := range effects {
		p, err := e.Proto()
		if err != nil {
			return err
		}
		all = append(all, p)
		var key string
		var version *int64
		if put := p.GetPut(); put != nil {
			key, version = put.GetKey(), put.Version
		}
		if d := p.GetDelete(); d != nil {
			key, version = d.GetKey(), d.Version
		}
		if key != "" && version != nil && w.kv[key].Version != *version {
			w.conflicts++
			return fmt.Errorf("%w: %s", contract.ErrConflict, key)
		}
	}
	before := maps.Clone(w.atWork)
	for _, e := range all {
		w.effect(e)
	}
	w.notifyIdle()
	w.checkSlots(before)
	return nil
}

func (w *world) effect(e *busv1.Effect) {
	switch k := e.GetKind().(type) {
	case *busv1.Effect_Put:
		key, value := k.Put.GetKey(), k.Put.GetValue()
		w.check(key, value)
		w.count(key, -1)
		if i, there := slices.BinarySearch(w.keys, key); !there {
			w.keys = slices.Insert(w.keys, i, key)
		}
		w.version++
		w.written++
		w.bytes += len(value)
		w.kv[key] = sdk.Value{Key: key, Value: value, Version: w.version}
		w.count(key, 1)
	case *busv1.Effect_Delete:
		key := k.Delete.GetKey()
		w.written++
		w.count(key, -1)
		if i, there := slices.BinarySearch(w.keys, key); there {
			w.keys = slices.Delete(w.keys, i, i+1)
		}
		delete(w.kv, key)
	case *busv1.Effect_Publish:
		if k.Publish.GetTopic() == contract.TopicUserNotify {
			w.notified = append(w.notified, string(k.Publish.GetPayload()))
			return
		}
		w.events = append(w.events, sdk.Event{Topic: k.Publish.GetTopic(), Payload: k.Publish.GetPayload()})
	case *busv1.Effect_SessionIdle:
		if s := w.sessions[k.SessionIdle.GetSession()]; s != nil {
			s.asked = true
			return
		}
		w.idle(k.SessionIdle.GetSession())
	case *busv1.Effect_SessionEnsure:
		w.made = append(w.made, k.SessionEnsure)
		key := k.SessionEnsure.GetAgent() + " " + k.SessionEnsure.GetKey()
		if w.byKey[key] == nil {
			s := &session{id: fmt.Sprintf("s%d", len(w.sessions)+1), agent: k.SessionEnsure.GetAgent(),
				key: k.SessionEnsure.GetKey()}
			w.byKey[key], w.sessions[s.id] = s, s
		}
	case *busv1.Effect_Input:
		if k.Input.GetIfExists() && w.lookUp(k.Input.GetSession(), k.Input.GetAgent(), k.Input.GetKey()) == nil {
			return
		}
		s := w.named(k.Input.GetSession(), k.Input.GetAgent(), k.Input.GetKey())
		if d := k.Input.GetDedupeKey(); d == "" || !w.known[d] {
			w.known[d] = true
			s.pending = append(s.pending, k.Input)
		}
	case *busv1.Effect_TurnCancel:
		s := w.lookUp(k.TurnCancel.GetSession(), k.TurnCancel.GetAgent(), k.TurnCancel.GetKey())
		if s == nil {
			return // it has ended
		}
		w.endTurn(s, contract.OutcomeCancelled, k.TurnCancel.GetReason())
		for range s.pending {
			w.say(s, contract.OutcomeCancelled, "")
		}
		s.pending = nil
	case *busv1.Effect_Withdraw:
		for _, s := range w.sessions {
			s.pending = slices.DeleteFunc(s.pending,
				func(in *busv1.Input) bool { return in.GetDedupeKey() == k.Withdraw.GetDedupeKey() })
		}
	default:
		w.t.Errorf("an effect %T", k)
	}
}

func (w *world) lookUp(id, agent, key string) *session {
	if id == "" {
		return w.byKey[agent+" "+key]
	}
	return w.sessions[id]
}

func (w *world) named(id, agent, key string) *session {
	s := w.lookUp(id, agent, key)
	if s == nil {
		w.t.Errorf("there is no session %s %s", id, key)
		return &session{}
	}
	return s
}

// notifyIdle publishes the requested idle events.
func (w *world) notifyIdle() {
	for _, s := range w.sessions {
		waits := slices.ContainsFunc(s.pending, func(in *busv1.Input) bool { return in.GetKind() != contract.InputRecord })
		if s.asked && s.running == nil && !s.busy && !waits {
			s.asked = false
			w.idle(s.id)
		}
	}
}

func (w *world) idle(id string) {
	payload, _ := json.Marshal(contract.SessionIdle{Session: id})
	w.events = append(w.events, sdk.Event{Topic: TopicIdle, Payload: payload})
}

// remove deletes a session.
func (w *world) remove(s *session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ran := s.running != nil
	w.endTurn(s, contract.OutcomeCancelled, "")
	for range s.pending {
		w.say(s, contract.OutcomeCancelled, "")
	}
	if !ran && len(s.pending) == 0 {
		w.say(s, contract.OutcomeCancelled, "")
	}
	if s.asked {
		w.idle(s.id)
	}
	delete(w.sessions, s.id)
	delete(w.byKey, s.agent+" "+s.key)
}

// endTurn ends the running turn of a session, if there is one.
func (w *world) endTurn(s *session, outcome, text string) {
	if s.running == nil {
		return
	}
	s.running, s.busy = nil, false
	defer w.notifyIdle()
	if s.asleep != nil {
		s.asleep()
	}
	w.say(s, outcome, text)
}

func (w *world) say(s *session, outcome, text string) {
	out := contract.AgentOutput{Session: s.id, Outcome: outcome, Text: text}
	if s.id != root {
		out.Extension, out.Key = ID, s.key
		if outcome != contract.OutcomeOK {
			out.Partial = "so far"
		}
	}
	payload, _ := json.Marshal(out)
	w.events = append(w.events, sdk.Event{Topic: contract.TopicAgentOutput, Payload: payload})
}

// check checks that a row may replace another.
func (w *world) check(key string, after []byte) {
	if strings.HasPrefix(key, taskPrefix) {
		var task Task
		_ = json.Unmarshal(after, &task)
		if old, known := w.history[task.ID]; known && old.State == Finished &&
			(task.State != Finished || task.Outcome != old.Outcome) {
			w.t.Errorf("%s was finished (%s) and is %s (%s)", task.Name, old.Outcome, task.State, task.Outcome)
		}
		w.history[task.ID] = task
	}
}

// work counts the tasks of an agent.
type work struct{ running, slots int }

// count adds a stored task to the running ones, or removes it.
func (w *world) count(key string, by int) {
	row, there := w.kv[key]
	var task Task
	if !there || !strings.HasPrefix(key, taskPrefix) || json.Unmarshal(row.Value, &task) != nil || task.State != Running {
		return
	}
	of := queueKey(task.Root, task.RequesterID)
	now := w.atWork[of]
	if !task.Waiting {
		now.running += by
	}
	if task.HasSlot {
		now.slots += by
	}
	w.atWork[of] = now
}

// checkSlots checks that no more tasks run than allowed, and that slots are
// counted right.
func (w *world) checkSlots(before map[string]work) {
	for key, now := range w.atWork {
		var q queue
		row, there := w.kv[key]
		if !there {
			continue // its agent has ended
		}
		_ = json.Unmarshal(row.Value, &q)
		if q.Limit > 0 && now.running > q.Limit && now.running > before[key].running {
			w.t.Errorf("%s: %d are at work, at most %d may", key, now.running, q.Limit)
		}
		if q.Used != now.slots {
			w.t.Errorf("%s: %d places are counted and %d taken", key, q.Used, now.slots)
		}
	}
}

// stored returns a row.
func stored[T any](w *world, key string) (v T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if row, ok := w.kv[key]; ok {
		if err := json.Unmarshal(row.Value, &v); err != nil {
			w.t.Errorf("%s: %v", key, err)
		}
	}
	return v
}
