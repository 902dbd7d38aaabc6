package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// root is the session of the conversation that is played.
const root = "s1"

// world is a kernel in memory: rows with versions, sessions with what waits in
// them, and what they have said that nobody has handled.
type world struct {
	t testing.TB

	mu       sync.Mutex
	kv       map[string]sdk.Value
	version  int64
	sessions map[string]*session // by id
	byKey    map[string]*session
	known    map[string]bool // dedupe keys
	events   []sdk.Event     // not handled yet
	notified []string
	history  map[string]Task // of each task, as it was stored last
}

type session struct {
	id, agent, key string
	pending        []*busv1.Input
	running        *busv1.Input
	busy           bool // a call of its turn runs
	asleep         context.CancelFunc
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{
		t: t, kv: map[string]sdk.Value{}, sessions: map[string]*session{}, byKey: map[string]*session{}, known: map[string]bool{}, history: map[string]Task{},
	}
	w.sessions[root] = &session{id: root, agent: "orchestrator", key: "chan"}
	return w
}

// extension is a process of the extension.
func (w *world) extension(ctx context.Context) *tasks {
	t := newTasks()
	t.config = config{Depth: 3, Concurrency: 2, PerRoot: 20}
	if err := t.begin(ctx, w); err != nil {
		w.t.Error(err)
	}
	return t
}

func (w *world) Get(_ context.Context, key string) (sdk.Value, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.kv[key]
	v.Key = key
	return v, nil
}

func (w *world) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	w.mu.Lock()
	var found []sdk.Value
	for key, v := range w.kv {
		if strings.HasPrefix(key, prefix) {
			found = append(found, v)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(found, func(a, b sdk.Value) int { return strings.Compare(a.Key, b.Key) })
	for _, v := range found {
		if err := each(v); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) Session(_ context.Context, id string) (key, state string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sessions[id]
	switch {
	case s == nil:
		return "", "", contract.ErrNotFound
	case s.running != nil || s.busy:
		return s.key, "running", nil
	case len(s.pending) > 0:
		return s.key, "waiting", nil
	}
	return s.key, stateIdle, nil
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
			return fmt.Errorf("%w: %s", contract.ErrConflict, key)
		}
	}
	for _, e := range all {
		w.effect(e)
	}
	return nil
}

func (w *world) effect(e *busv1.Effect) {
	switch k := e.GetKind().(type) {
	case *busv1.Effect_Put:
		w.check(k.Put.GetKey(), w.kv[k.Put.GetKey()].Value, k.Put.GetValue())
		w.version++
		w.kv[k.Put.GetKey()] = sdk.Value{Key: k.Put.GetKey(), Value: k.Put.GetValue(), Version: w.version}
	case *busv1.Effect_Delete:
		delete(w.kv, k.Delete.GetKey())
	case *busv1.Effect_Publish:
		if k.Publish.GetTopic() == contract.TopicUserNotify {
			w.notified = append(w.notified, string(k.Publish.GetPayload()))
			return
		}
		w.events = append(w.events, sdk.Event{Topic: k.Publish.GetTopic(), Payload: k.Publish.GetPayload()})
	case *busv1.Effect_SessionEnsure:
		key := k.SessionEnsure.GetAgent() + " " + k.SessionEnsure.GetKey()
		if w.byKey[key] == nil {
			s := &session{id: fmt.Sprintf("s%d", len(w.sessions)+1), agent: k.SessionEnsure.GetAgent(), key: k.SessionEnsure.GetKey()}
			w.byKey[key], w.sessions[s.id] = s, s
		}
	case *busv1.Effect_Input:
		s := w.named(k.Input.GetSession(), k.Input.GetAgent(), k.Input.GetKey())
		if d := k.Input.GetDedupeKey(); d == "" || !w.known[d] {
			w.known[d] = true
			s.pending = append(s.pending, k.Input)
		}
	case *busv1.Effect_TurnCancel:
		s := w.named(k.TurnCancel.GetSession(), k.TurnCancel.GetAgent(), k.TurnCancel.GetKey())
		w.says(s, contract.OutcomeCancelled, k.TurnCancel.GetReason())
		for range s.pending {
			w.say(s, contract.OutcomeCancelled, "")
		}
		s.pending = nil
	case *busv1.Effect_Withdraw:
		for _, s := range w.sessions {
			s.pending = slices.DeleteFunc(s.pending, func(in *busv1.Input) bool { return in.GetDedupeKey() == k.Withdraw.GetDedupeKey() })
		}
	default:
		w.t.Errorf("an effect %T", k)
	}
}

func (w *world) named(id, agent, key string) *session {
	s := w.sessions[id]
	if id == "" {
		s = w.byKey[agent+" "+key]
	}
	if s == nil {
		w.t.Errorf("there is no session %s %s", id, key)
		return &session{}
	}
	return s
}

// says ends the running turn of a session, if there is one.
func (w *world) says(s *session, outcome, text string) {
	if s.running == nil {
		return
	}
	s.running, s.busy = nil, false
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

// check says whether a row may follow another one.
func (w *world) check(key string, before, after []byte) {
	if strings.HasPrefix(key, taskPrefix) {
		var task Task
		_ = json.Unmarshal(after, &task)
		if old, known := w.history[task.ID]; known && old.State == Finished && (task.State != Finished || task.Outcome != old.Outcome) {
			w.t.Errorf("%s was finished (%s) and is %s (%s)", task.Name, old.Outcome, task.State, task.Outcome)
		}
		w.history[task.ID] = task
	}
	if strings.HasPrefix(key, queuePrefix) {
		var old, now queue
		_ = json.Unmarshal(before, &old)
		_ = json.Unmarshal(after, &now)
		if now.Limit > 0 && len(now.Running) > now.Limit && len(now.Running) > len(old.Running) {
			w.t.Errorf("%s: %v run, at most %d may", key, now.Running, now.Limit)
		}
	}
}

// stored is a row.
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
