package sdktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// transaction applies effects one by one and can take them back.
type transaction struct {
	*state
	source    string
	cause     *busv1.Event // of the lane that commits; nil: none
	published []*busv1.Event
	undo      []func()
}

func (tx *transaction) rollback() {
	for _, undo := range slices.Backward(tx.undo) {
		undo()
	}
}

func set[K comparable, V any](tx *transaction, m map[K]V, key K, value V) {
	old, had := m[key]
	m[key] = value
	tx.undo = append(tx.undo, func() {
		if delete(m, key); had {
			m[key] = old
		}
	})
}

func (tx *transaction) apply(e *busv1.Effect) (*busv1.EffectResult, error) {
	switch k := e.GetKind().(type) {
	case *busv1.Effect_Publish:
		return tx.publish(k.Publish)
	case *busv1.Effect_Put:
		return tx.put(k.Put)
	case *busv1.Effect_Delete:
		return tx.delete(k.Delete)
	case *busv1.Effect_SessionEnsure:
		return tx.ensure(k.SessionEnsure)
	case *busv1.Effect_Input:
		return tx.input(k.Input)
	case *busv1.Effect_Append:
		return tx.append(k.Append)
	case *busv1.Effect_Withdraw:
		return tx.withdraw(k.Withdraw)
	case *busv1.Effect_Receipt:
		return &busv1.EffectResult{Conversation: "conversation:" + k.Receipt.GetConversation()}, nil
	case *busv1.Effect_Steer:
		return nil, fmt.Errorf("steer: this fake interrupts no turn: %w", contract.ErrInvalid)
	case *busv1.Effect_TurnCancel:
		return &busv1.EffectResult{}, nil
	case *busv1.Effect_SessionIdle: // nothing runs here
		return tx.publish(&busv1.Publish{Topic: contract.TopicSessionIdle + tx.source, Payload: fmt.Appendf(nil, `{"session":%q}`, k.SessionIdle.GetSession())})
	default:
		return nil, fmt.Errorf("an effect of no kind: %w", contract.ErrInvalid)
	}
}

func (tx *transaction) publish(p *busv1.Publish) (*busv1.EffectResult, error) {
	switch {
	case !topic.ValidTopic(p.GetTopic()):
		return nil, fmt.Errorf("publish: %q is no topic: %w", p.GetTopic(), contract.ErrInvalid)
	case len(p.GetPayload()) > contract.MaxPayload:
		return nil, fmt.Errorf("publish %s: payload of %d bytes (at most %d): %w", p.GetTopic(), len(p.GetPayload()), contract.MaxPayload, contract.ErrTooLarge)
	case !json.Valid(p.GetPayload()):
		return nil, fmt.Errorf("publish %s: the payload is no JSON: %w", p.GetTopic(), contract.ErrInvalid)
	}
	return tx.accept(&busv1.Event{
		Topic: p.GetTopic(), Key: p.GetKey(), Payload: p.GetPayload(), DedupeKey: p.GetDedupeKey(),
	}), nil
}

// accept gives an event its place in the order.
func (tx *transaction) accept(e *busv1.Event) *busv1.EffectResult {
	dedupe := tx.source + "\x00" + e.GetDedupeKey()
	if first := tx.dedupe[dedupe]; first != nil && e.GetDedupeKey() != "" {
		return &busv1.EffectResult{EventId: first.GetId(), Duplicate: true}
	}
	before := tx.events
	tx.undo = append(tx.undo, func() { tx.events = before })
	e.Seq = int64(len(tx.events)) + 1
	e.Id = fmt.Sprintf("e%d", e.GetSeq())
	e.Source, e.CorrelationId = tx.source, e.GetId()
	e.CreatedAtUs = time.Now().UnixMicro()
	if tx.cause != nil {
		e.CausationId, e.CorrelationId = tx.cause.GetId(), tx.cause.GetCorrelationId()
		e.Hop = tx.cause.GetHop() + 1
	}
	tx.events = append(tx.events, e)
	tx.published = append(tx.published, e)
	if e.GetDedupeKey() != "" {
		set(tx, tx.dedupe, dedupe, e)
	}
	return &busv1.EffectResult{EventId: e.GetId()}
}

func (tx *transaction) check(key string, expected *int64) error {
	if have := tx.kv[key].GetVersion(); expected != nil && *expected != have {
		return fmt.Errorf("key %q has version %d, not %d: %w", key, have, *expected, contract.ErrConflict)
	}
	return nil
}

func (tx *transaction) put(p *busv1.Put) (*busv1.EffectResult, error) {
	if p.GetKey() == "" {
		return nil, fmt.Errorf("put: no key: %w", contract.ErrInvalid)
	}
	if err := tx.check(p.GetKey(), p.Version); err != nil {
		return nil, err
	}
	tx.version++ // never used again, even if this is rolled back
	set(tx, tx.kv, p.GetKey(), &kernelv1.Value{Key: p.GetKey(), Value: p.GetValue(), Version: tx.version})
	return &busv1.EffectResult{Version: tx.version}, nil
}

func (tx *transaction) delete(d *busv1.Delete) (*busv1.EffectResult, error) {
	if err := tx.check(d.GetKey(), d.Version); err != nil {
		return nil, err
	}
	if old, ok := tx.kv[d.GetKey()]; ok {
		delete(tx.kv, d.GetKey())
		tx.undo = append(tx.undo, func() { tx.kv[d.GetKey()] = old })
	}
	return &busv1.EffectResult{}, nil
}

func (tx *transaction) ensure(e *busv1.SessionEnsure) (*busv1.EffectResult, error) {
	if e.GetAgent() == "" || e.GetKey() == "" {
		return nil, fmt.Errorf("session.ensure: agent and key are needed: %w", contract.ErrInvalid)
	}
	id := sessionID(e.GetAgent(), e.GetKey())
	if tx.sessions[id] == nil {
		set(tx, tx.sessions, id, &session{info: &kernelv1.Session{
			Id: id, Agent: e.GetAgent(), Key: e.GetKey(), State: "idle", CreatedAtUs: time.Now().UnixMicro(),
		}})
	}
	return &busv1.EffectResult{Session: id}, nil
}

func sessionID(agent, key string) string { return agent + "/" + key }

func (tx *transaction) input(in *busv1.Input) (*busv1.EffectResult, error) {
	id := in.GetSession()
	if id == "" {
		id = sessionID(in.GetAgent(), in.GetKey())
	}
	s := tx.sessions[id]
	if s == nil && in.GetIfExists() {
		return &busv1.EffectResult{}, nil
	}
	if s == nil {
		return nil, fmt.Errorf("input: session %q: %w", id, contract.ErrNotFound)
	}
	payload := contract.AgentInput{Session: id, Kind: in.GetKind(), Sender: in.GetSender(), Text: in.GetText(), ReplyTo: in.GetReplyTo(), Thread: in.GetThread()}
	if len(in.GetMeta()) > 0 {
		if err := json.Unmarshal(in.GetMeta(), &payload.Meta); err != nil {
			return nil, fmt.Errorf("input: meta: %w: %w", contract.ErrInvalid, err)
		}
	}
	b, err := json.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("input: %w: %w", contract.ErrInvalid, err)
	}
	r := tx.accept(&busv1.Event{
		Topic: contract.TopicAgentInput + s.info.GetAgent(), Key: id, Payload: b, DedupeKey: in.GetDedupeKey(),
	})
	r.Session = id
	return r, nil
}

func (tx *transaction) append(a *busv1.Append) (*busv1.EffectResult, error) {
	s := tx.sessions[a.GetSession()]
	if s == nil {
		return nil, fmt.Errorf("append: session %q: %w", a.GetSession(), contract.ErrNotFound)
	}
	if have := int64(len(s.entries)); have != a.GetExpectedSeq() {
		return nil, fmt.Errorf("append: session %s is at row %d, not %d: %w", a.GetSession(), have, a.GetExpectedSeq(), contract.ErrConflict)
	}
	before := s.entries
	tx.undo = append(tx.undo, func() { s.entries = before })
	r := &busv1.EffectResult{}
	for _, given := range a.GetEntries() {
		e := proto.CloneOf(given)
		e.Seq, e.CreatedAtUs = int64(len(s.entries))+1, time.Now().UnixMicro()
		for _, c := range e.GetCalls() {
			tx.calls++
			c.CallId, c.State = fmt.Sprintf("call%d", tx.calls), "open"
			r.Calls = append(r.Calls, c)
		}
		s.entries = append(s.entries, e)
	}
	r.Seq = int64(len(s.entries))
	return r, nil
}

func (tx *transaction) withdraw(w *busv1.Withdraw) (*busv1.EffectResult, error) {
	id := w.GetEventId()
	if id == "" {
		id = tx.dedupe[tx.source+"\x00"+w.GetDedupeKey()].GetId()
	}
	if id == "" || !strings.HasPrefix(id, "e") {
		return nil, fmt.Errorf("withdraw: no such event: %w", contract.ErrNotFound)
	}
	if tx.tooLate[id] {
		return &busv1.EffectResult{EventId: id, TooLate: true}, nil
	}
	set(tx, tx.withdrawn, id, true)
	return &busv1.EffectResult{EventId: id}, nil
}

// show passes an event to those who watch its topic; a slow one loses it.
func (s *state) show(e *busv1.Event) {
	for watcher, patterns := range s.watchers {
		for _, p := range patterns {
			if topic.Match(p, e.GetTopic()) {
				select {
				case watcher <- e:
				default:
				}
				break
			}
		}
	}
}
