package links

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// fakeKernel is a kernel whose clock and agents the test controls. Commits are
// atomic, versions are checked, and each input has one turn with one output.
type fakeKernel struct {
	t   testing.TB
	now time.Time
	c   config
	l   *links

	version  int64
	kv       map[string]sdk.Value
	dedupe   map[string]bool
	sessions map[string]*fakeSession
	keys     map[string]string // agent and key -> session
	calls    int
	made     int          // sessions
	outputs  []fakeOutput // not handled yet
	killed   bool         // the process dies at the next commit of a handler
	notified []string     // notices to people
}

type fakeSession struct {
	id, agent, key string
	group          bool // shared
	principal      contract.Principal
	queue          []fakeInput
	heard          []string // its history, as "kind from sender [thread]: text"
	records        []string
	results        []fakeInput
}

type fakeInput struct {
	contract.AgentInput
	dedupe string
	frame  string // its context
}

type fakeOutput struct {
	contract.AgentOutput
	at  time.Time
	hop int
}

func (s *fakeSession) link() bool { return strings.HasPrefix(s.key, "link:") }

func play(t testing.TB, all ...link) *fakeKernel {
	t.Helper()
	p := &fakeKernel{
		t: t, now: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC), c: config{Links: all},
		kv: map[string]sdk.Value{}, dedupe: map[string]bool{}, sessions: map[string]*fakeSession{}, keys: map[string]string{},
	}
	p.restart()
	return p
}

// restart starts the extension, or restarts it on the same store.
func (p *fakeKernel) restart() {
	p.t.Helper()
	p.l = &links{}
	c := config{Links: slices.Clone(p.c.Links)}
	if err := p.l.start(p.t.Context(), p, hclog.NewNullLogger(), func() time.Time { return p.now }, c); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fakeKernel) Get(_ context.Context, key string) (sdk.Value, error) {
	v := p.kv[key]
	v.Key = key
	return v, nil
}

func (p *fakeKernel) Scan(_ context.Context, prefix string, each func(sdk.Value) error) error {
	var found []string
	for key := range p.kv {
		if strings.HasPrefix(key, prefix) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	for _, key := range found {
		if err := each(p.kv[key]); err != nil {
			return err
		}
	}
	return nil
}

func (p *fakeKernel) Commit(_ context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	return p.commit(effects)
}

func (p *fakeKernel) Session(_ context.Context, id string) (*kernelv1.Session, error) {
	if p.sessions[id] == nil {
		return nil, contract.ErrNotFound
	}
	return &kernelv1.Session{Id: id}, nil
}

func (p *fakeKernel) session(agent, key string) *fakeSession {
	id := p.keys[agent+" "+key]
	if id == "" {
		p.made++
		id = fmt.Sprintf("s%d", p.made)
		p.keys[agent+" "+key] = id
		p.sessions[id] = &fakeSession{id: id, agent: agent, key: key}
	}
	return p.sessions[id]
}

// commit applies all effects or none.
func (p *fakeKernel) commit(effects sdk.Effects) (results []*busv1.EffectResult, err error) {
	kv, dedupe := maps.Clone(p.kv), maps.Clone(p.dedupe)
	var queued []func()
	size := 0
	for _, e := range effects {
		pb, err := e.Proto()
		if err != nil {
			return nil, err
		}
		r := &busv1.EffectResult{}
		size = max(size, proto.Size(pb))
		switch k := pb.GetKind().(type) {
		case *busv1.Effect_Put:
			if k.Put.Version != nil && k.Put.GetVersion() != kv[k.Put.GetKey()].Version {
				return nil, fmt.Errorf("key %s: %w", k.Put.GetKey(), contract.ErrConflict)
			}
			p.version++
			kv[k.Put.GetKey()] = sdk.Value{Key: k.Put.GetKey(), Value: k.Put.GetValue(), Version: p.version}
		case *busv1.Effect_Delete:
			if k.Delete.Version != nil && k.Delete.GetVersion() != kv[k.Delete.GetKey()].Version {
				return nil, fmt.Errorf("key %s: %w", k.Delete.GetKey(), contract.ErrConflict)
			}
			delete(kv, k.Delete.GetKey())
		case *busv1.Effect_SessionEnsure:
			group, principal := false, contract.Principal{}
			if id := k.SessionEnsure.GetWithin(); id != "" {
				within := p.sessions[id]
				if within == nil {
					return nil, fmt.Errorf("within %s: %w", id, contract.ErrNotFound)
				}
				group, principal = within.group, within.principal
			}
			known := len(p.sessions)
			s := p.session(k.SessionEnsure.GetAgent(), k.SessionEnsure.GetKey())
			if len(p.sessions) > known {
				s.group, s.principal = group, principal
			}
			r.Session = s.id
		case *busv1.Effect_Input:
			s := p.sessions[k.Input.GetSession()]
			if k.Input.GetSession() == "" {
				s = p.sessions[p.keys[k.Input.GetAgent()+" "+k.Input.GetKey()]]
			}
			if s == nil && k.Input.GetIfExists() {
				break
			}
			if s == nil {
				return nil, fmt.Errorf("session %s %s: %w", k.Input.GetAgent(), k.Input.GetKey(), contract.ErrNotFound)
			}
			if d := k.Input.GetDedupeKey(); d != "" {
				if dedupe[d] {
					p.t.Errorf("the input %s is queued twice", d)
				}
				dedupe[d] = true
			}
			in := fakeInput{dedupe: k.Input.GetDedupeKey(), AgentInput: contract.AgentInput{
				Session: s.id, Kind: k.Input.GetKind(), Sender: k.Input.GetSender(), Text: k.Input.GetText(),
				Thread: k.Input.GetThread(),
			}}
			payload, err := json.Marshal(in.AgentInput)
			if err != nil {
				return nil, err
			}
			size = max(size, len(payload)+len(k.Input.GetMeta()))
			if m := k.Input.GetMeta(); len(m) > 0 {
				var along struct{ Context map[string]string }
				if err := json.Unmarshal(m, &along); err != nil {
					return nil, err
				}
				in.frame = along.Context["links/peers"]
			}
			queued = append(queued, func() { s.queue = append(s.queue, in) })
		case *busv1.Effect_Publish:
			queued = append(queued, func() { p.notified = append(p.notified, string(k.Publish.GetPayload())) })
		case *busv1.Effect_Withdraw:
			queued = append(queued, func() {
				for _, s := range p.sessions {
					s.queue = slices.DeleteFunc(s.queue, func(in fakeInput) bool { return in.dedupe == k.Withdraw.GetDedupeKey() })
				}
			})
		default:
			return nil, fmt.Errorf("%T is not granted: %w", k, contract.ErrDenied)
		}
		results = append(results, r)
	}
	if size > contract.MaxPayload {
		return nil, fmt.Errorf("an effect of %d bytes: %w", size, contract.ErrTooLarge)
	}
	p.kv, p.dedupe = kv, dedupe
	for _, f := range queued {
		f()
	}
	return results, nil
}

// portal is a conversation of a person with an agent.
func (p *fakeKernel) portal(agent, name string) *fakeTurn {
	s := p.session(agent, "chan:telegram:"+name)
	return &fakeTurn{p: p, s: s}
}

// fakeTurn is a running turn.
type fakeTurn struct {
	p  *fakeKernel
	s  *fakeSession
	in fakeInput
}

func (p *fakeKernel) side(self, peer string) *fakeSession {
	p.t.Helper()
	id := p.keys[self+" "+sessionKey(self, peer, "")]
	if id == "" {
		p.t.Fatalf("no side of %s towards %s", self, peer)
	}
	return p.sessions[id]
}

// next begins the next turn of a session; nil: only records are queued.
func (p *fakeKernel) next(s *fakeSession) *fakeTurn {
	for len(s.queue) > 0 {
		in := s.queue[0]
		s.queue = s.queue[1:]
		s.heard = append(s.heard, fmt.Sprintf("%s from %s [%s]: %s", in.Kind, in.Sender, in.Thread, in.Text))
		switch in.Kind {
		case contract.InputRecord:
			s.records = append(s.records, in.Text)
			continue
		case contract.InputResult:
			s.results = append(s.results, in)
		}
		return &fakeTurn{p: p, s: s, in: in}
	}
	return nil
}

// read returns the records of a session that has no other input.
func (p *fakeKernel) read(s *fakeSession) []string {
	p.t.Helper()
	p.noTurn(s)
	return s.records
}

// turnWith begins the next turn of a session, and checks its input.
func (p *fakeKernel) turnWith(s *fakeSession, kind, words string) *fakeTurn {
	p.t.Helper()
	turn := p.next(s)
	if turn == nil {
		p.t.Fatalf("%s got nothing on %s, want %q", s.agent, s.key, words)
	}
	if turn.in.Kind != kind || !strings.Contains(turn.in.Text, words) {
		p.t.Fatalf("%s got on %s the %s %q, want the %s %q", s.agent, s.key, turn.in.Kind, turn.in.Text, kind, words)
	}
	return turn
}

func (p *fakeKernel) noTurn(s *fakeSession) {
	p.t.Helper()
	if turn := p.next(s); turn != nil {
		p.t.Fatalf("%s got on %s the %s %q", s.agent, s.key, turn.in.Kind, turn.in.Text)
	}
}

// call calls a tool like the kernel: its effects are committed with its result, and
// a conflict repeats it.
func (u *fakeTurn) call(tool string, arguments map[string]any) sdk.ToolResult {
	u.p.t.Helper()
	u.p.calls++
	raw, err := json.Marshal(arguments)
	if err != nil {
		u.p.t.Fatal(err)
	}
	principal := u.s.principal
	if u.s.group {
		principal = contract.Principal{Group: "g1", Confined: true}
	}
	i := slices.IndexFunc(u.p.l.tools(), func(t sdk.Tool) bool { return t.Name == tool })
	for range 10 {
		r, err := u.p.l.tools()[i].Call(u.p.t.Context(), sdk.ToolCall{
			ID: fmt.Sprintf("c%d", u.p.calls), Name: tool, Arguments: raw, Session: u.s.id, Agent: u.s.agent,
			Thread: u.in.Thread, Input: u.in.dedupe, Group: u.s.group,
			Principal: principal,
		})
		if err == nil {
			_, err = u.p.commit(r.Effects)
		}
		switch {
		case errors.Is(err, contract.ErrConflict):
			continue
		case err != nil:
			u.p.t.Fatalf("%s: %v", tool, err)
		}
		return r
	}
	u.p.t.Fatalf("%s conflicts again and again", tool)
	return sdk.ToolResult{}
}

func (u *fakeTurn) send(target, message string) string {
	u.p.t.Helper()
	r := u.call("send_agent_message", map[string]any{"target": target, "message": message})
	if r.IsError {
		u.p.t.Fatalf("%s cannot write to %s: %s", u.s.agent, target, r.Content)
	}
	var sent struct{ Exchange string }
	if err := json.Unmarshal([]byte(r.Content), &sent); err != nil {
		u.p.t.Fatal(err)
	}
	return sent.Exchange
}

func (u *fakeTurn) conclude(summary string) {
	u.p.t.Helper()
	if r := u.call("conclude_link", map[string]any{"summary": summary}); r.IsError {
		u.p.t.Fatalf("%s cannot conclude: %s", u.s.agent, r.Content)
	}
}

// end ends the turn; its output goes to the extension if that is the outbound.
func (u *fakeTurn) end(outcome, text string) {
	u.p.t.Helper()
	u.endWith(outcome, text)
	u.p.settle()
}

func (u *fakeTurn) endWith(outcome, text string) {
	u.p.endTurn(u.s, outcome, text, u.in)
}

// endTurn ends the turn of an input.
func (p *fakeKernel) endTurn(s *fakeSession, outcome, text string, in fakeInput) {
	if s.link() {
		p.outputs = append(p.outputs, fakeOutput{at: p.now, AgentOutput: contract.AgentOutput{
			Session: s.id, Key: s.key, Outcome: outcome, Text: text, Thread: in.Thread, Input: in.dedupe,
		}})
	}
}

// deleteSession deletes a session like the kernel.
func (p *fakeKernel) deleteSession(s *fakeSession) {
	said := false
	for _, in := range s.queue {
		if in.Kind != contract.InputRecord {
			p.endTurn(s, contract.OutcomeCancelled, "", in)
			said = true
		}
	}
	if !said {
		p.endTurn(s, contract.OutcomeCancelled, "", fakeInput{})
	}
	delete(p.sessions, s.id)
	delete(p.keys, s.agent+" "+s.key)
}

func (u *fakeTurn) reply(text string) {
	u.p.t.Helper()
	u.end(contract.OutcomeOK, text)
}

// settle lets the extension handle all outputs.
func (p *fakeKernel) settle() {
	p.t.Helper()
	for len(p.outputs) > 0 {
		p.handle()
	}
}

// handle lets it handle the first output.
func (p *fakeKernel) handle() {
	p.t.Helper()
	out := p.outputs[0]
	payload, err := json.Marshal(out.AgentOutput)
	if err != nil {
		p.t.Fatal(err)
	}
	effects, err := p.l.handle(p.t.Context(), sdk.Event{
		Topic: contract.TopicAgentOutput, Key: out.Session, Payload: payload, CreatedAt: out.at, Hop: out.hop,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if p.killed {
		p.killed = false
		p.restart()
		return
	}
	if _, err := p.commit(effects); err != nil {
		p.t.Fatal(err)
	}
	p.outputs = p.outputs[1:]
}

// advance advances the clock and runs a sweep.
func (p *fakeKernel) advance(d time.Duration) {
	p.t.Helper()
	p.now = p.now.Add(d)
	if err := p.l.sweep(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

func (p *fakeKernel) exchange(id string) *exchange {
	p.t.Helper()
	x, err := p.l.load(p.t.Context(), id)
	if err != nil || x == nil {
		p.t.Fatalf("exchange %s: %v", id, err)
	}
	return x
}
