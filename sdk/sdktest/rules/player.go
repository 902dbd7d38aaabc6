package rules

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/effect"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel"
)

// player is what the played kernel keeps while the extension is started again and again:
// its values, the tokens and lanes that it gave out, and notes of what was wrong.
type player struct {
	spec *kernel.Spec

	mu       sync.Mutex
	tokens   []string        // that Init has brought, the last one in force
	lanes    map[string]bool // lent out, by whether the handler still has it
	values   map[string]*busv1.Put
	versions map[string]int64
	blobs    map[string][]byte
	commits  map[string]*busv1.CommitReceipt // by id
	seq      int64
	apart    map[string][]string // what was published apart from an answer and without an id, by lane
	notes    map[string][]string // by rule
	effects  int                 // committed
	calls    int                 // of the kernel's services
	changed  map[string]int      // effects committed under a lane
}

func newPlayer(s *kernel.Spec) *player {
	return &player{
		spec: s, lanes: map[string]bool{}, values: map[string]*busv1.Put{}, versions: map[string]int64{},
		blobs: map[string][]byte{}, commits: map[string]*busv1.CommitReceipt{}, apart: map[string][]string{},
		notes: map[string][]string{}, changed: map[string]int{},
	}
}

// note keeps what breaks a rule that is checked all the time.
func (k *player) note(rule, what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.noteLocked(rule, what)
}

func (k *player) noteLocked(rule, what string) {
	if !slices.Contains(k.notes[rule], what) {
		k.notes[rule] = append(k.notes[rule], what)
	}
}

// noted is what broke a rule.
func (k *player) noted(rule string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.notes[rule])
}

// token makes the token of a new generation.
func (k *player) token() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	token := fmt.Sprintf("token%d", len(k.tokens)+1)
	k.tokens = append(k.tokens, token)
	return token
}

// admit checks the token of a request.
func (k *player) admit(method, token string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
	switch {
	case len(k.tokens) > 0 && token == k.tokens[len(k.tokens)-1]:
		return nil
	case token == "":
		k.noteLocked("token", fmt.Sprintf("%s without %q in its metadata", method, contract.TokenHeader))
	case !slices.Contains(k.tokens, token):
		k.noteLocked("token", fmt.Sprintf("%s with a token that no Init has brought", method))
	}
	return fmt.Errorf("%w: the token is not the one of the last Init", contract.ErrStale)
}

// lend gives out a lane token.
func (k *player) lend(lane string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lanes[lane] = true
}

// takeBack ends the use of a lane token.
func (k *player) takeBack(lane string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lanes[lane] = false
}

// over reports whether a lane token was given out and taken back.
func (k *player) over(lane string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	held, lent := k.lanes[lane]
	return lent && !held
}

// lane checks the lane token of a request; empty: none.
func (k *player) lane(what, lane string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.laneLocked(what, lane)
}

func (k *player) laneLocked(what, lane string) error {
	held, lent := k.lanes[lane]
	switch {
	case lane == "" || held:
		return nil
	case !lent:
		k.noteLocked("lane", fmt.Sprintf("%s with a lane token that no delivery or call has brought", what))
	default:
		k.noteLocked("lane", fmt.Sprintf("%s with the lane token of a delivery or call that was answered before", what))
	}
	return contract.ErrStale
}

// answered takes the outcome of a delivery.
func (k *player) answered(o *busv1.Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	held, lent := k.lanes[o.GetToken()]
	switch {
	case !lent:
		k.noteLocked("outcomes", fmt.Sprintf("an outcome with the token %q, which no delivery has", o.GetToken()))
	case !held:
		k.noteLocked("outcomes", "two outcomes of one delivery")
	}
	k.lanes[o.GetToken()] = false
	kind := strings.TrimPrefix(o.GetKind().String(), "KIND_")
	switch o.GetKind() {
	case busv1.Outcome_KIND_ACK:
	case busv1.Outcome_KIND_RETRY:
		if o.GetRetryAfterMs() < 0 {
			k.noteLocked("outcomes", fmt.Sprintf("RETRY with retry_after_ms %d", o.GetRetryAfterMs()))
		}
	case busv1.Outcome_KIND_DROP, busv1.Outcome_KIND_FAIL, busv1.Outcome_KIND_UNKNOWN:
		if o.GetReason() == "" {
			k.noteLocked("outcomes", kind+" without a reason")
		}
	default:
		k.noteLocked("outcomes", fmt.Sprintf("an outcome of the kind %s", o.GetKind()))
	}
	if len(o.GetEffects()) > 0 && o.GetKind() != busv1.Outcome_KIND_ACK && o.GetKind() != busv1.Outcome_KIND_DROP {
		k.noteLocked("outcomes", kind+" with effects: only ACK and DROP have some")
	}
	_, _ = k.apply(o.GetEffects(), "the answer to a delivery")
}

// commit commits effects apart from an answer.
func (k *player) commit(c *busv1.Commit) *busv1.CommitReceipt {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.laneLocked("a commit", c.GetLane()); err != nil {
		return &busv1.CommitReceipt{Error: contract.ToProto(err)}
	}
	if first := k.commits[c.GetId()]; c.GetId() != "" && first != nil {
		return first
	}
	results, err := k.apply(c.GetEffects(), "a commit")
	if err != nil {
		return &busv1.CommitReceipt{Error: contract.ToProto(err)}
	}
	if c.GetLane() != "" {
		k.changed[c.GetLane()] += len(c.GetEffects())
		for _, e := range c.GetEffects() {
			if p := e.GetPublish(); p != nil && c.GetId() == "" && p.GetDedupeKey() == "" {
				k.apart[c.GetLane()] = append(k.apart[c.GetLane()], p.GetTopic())
			}
		}
	}
	receipt := &busv1.CommitReceipt{Results: results}
	if c.GetId() != "" {
		k.commits[c.GetId()] = receipt
	}
	return receipt
}

// publishedApart is what was published under a lane so that a repetition publishes it again.
func (k *player) publishedApart(lane string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.apart[lane]
}

// effectsUnder is how many effects were committed under a lane apart from its answer.
func (k *player) effectsUnder(lane string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed[lane]
}

// take applies the effects of a tool's result.
func (k *player) take(effects []*busv1.Effect, where string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, err := k.apply(effects, where)
	return err
}

// apply applies effects, all or none. The caller holds mu.
func (k *player) apply(effects []*busv1.Effect, where string) (results []*busv1.EffectResult, err error) {
	if len(effects) > contract.MaxEffects {
		k.noteLocked("payloads", fmt.Sprintf("%s has %d effects, the limit is %d", where, len(effects), contract.MaxEffects))
		return nil, contract.ErrTooLarge
	}
	for _, e := range effects {
		if err := granted(k.spec, e); err != nil {
			k.noteLocked("grants", fmt.Sprintf("%s: %v", where, err))
			return nil, err
		}
		if err := effect.Check(e); err != nil {
			k.noteLocked("payloads", fmt.Sprintf("%s: %v", where, err))
			return nil, err
		}
		if err := k.current(e); err != nil {
			return nil, err
		}
		if p := e.GetPublish(); p.GetTopic() == contract.TopicUserMessage {
			if text := wrongUserMessage(p.GetPayload()); text != "" {
				k.noteLocked("payloads", fmt.Sprintf("%s: user.message: %s", where, text))
			}
		}
	}
	for _, e := range effects {
		k.effects++
		k.seq++
		results = append(results, k.change(e))
	}
	return results, nil
}

// current checks the version that a change of a value names.
func (k *player) current(e *busv1.Effect) error {
	key, version := e.GetPut().GetKey(), (*int64)(nil)
	if p := e.GetPut(); p != nil {
		version = p.Version
	}
	if d := e.GetDelete(); d != nil {
		key, version = d.GetKey(), d.Version
	}
	if version != nil && *version != k.versions[key] {
		return fmt.Errorf("%w: %s has the version %d", contract.ErrConflict, key, k.versions[key])
	}
	return nil
}

func (k *player) change(e *busv1.Effect) *busv1.EffectResult {
	r := &busv1.EffectResult{}
	switch v := e.GetKind().(type) {
	case *busv1.Effect_Publish:
		r.EventId = fmt.Sprintf("p%d", k.seq)
	case *busv1.Effect_Put:
		k.values[v.Put.GetKey()] = proto.CloneOf(v.Put)
		k.versions[v.Put.GetKey()] = k.seq
		r.Version = k.seq
	case *busv1.Effect_Delete:
		delete(k.values, v.Delete.GetKey())
		delete(k.versions, v.Delete.GetKey())
	case *busv1.Effect_SessionEnsure:
		r.Session = sampleSession
	case *busv1.Effect_Input:
		r.EventId, r.Session = fmt.Sprintf("p%d", k.seq), sampleSession
	case *busv1.Effect_Call:
		r.EventId = fmt.Sprintf("p%d", k.seq)
	case *busv1.Effect_Append:
		r.Seq = v.Append.GetExpectedSeq() + int64(len(v.Append.GetEntries()))
		for _, entry := range v.Append.GetEntries() {
			r.Calls = append(r.Calls, entry.GetCalls()...)
		}
	}
	return r
}

// granted refuses an effect that the manifest does not grant, as the kernel does.
func granted(s *kernel.Spec, e *busv1.Effect) error {
	permission := ""
	switch v := e.GetKind().(type) {
	case *busv1.Effect_Publish:
		return mayPublish(s, v.Publish.GetTopic())
	case *busv1.Effect_Receipt:
		if s.Provides.Channel == nil {
			return fmt.Errorf("%w: a receipt, but the manifest lacks \"provides: {channel: ...}\"", contract.ErrDenied)
		}
	case *busv1.Effect_Append, *busv1.Effect_Steer:
		if s.Agent == nil {
			return fmt.Errorf("%w: a change of a session's history, but the manifest lacks \"agent\"", contract.ErrDenied)
		}
	case *busv1.Effect_SessionEnsure:
		permission = "session.ensure"
	case *busv1.Effect_Input, *busv1.Effect_SessionIdle:
		permission = "input"
	case *busv1.Effect_TurnCancel:
		permission = "turn.cancel"
	case *busv1.Effect_Withdraw:
		permission = "withdraw"
	case *busv1.Effect_Call:
		return mayCall(s, v.Call.GetTool())
	case nil:
		return fmt.Errorf("%w: an effect without a kind", contract.ErrInvalid)
	}
	if permission != "" && !slices.Contains(s.Permissions.Effects, permission) {
		return fmt.Errorf("%w: the manifest lacks \"permissions: {effects: [%s]}\"", contract.ErrDenied, permission)
	}
	return nil
}

func mayPublish(s *kernel.Spec, name string) error {
	switch {
	case !topic.ValidTopic(name):
		return fmt.Errorf("%w: %q is not a topic", contract.ErrInvalid, name)
	case name == contract.TopicAgentOutput && s.Agent != nil:
		return nil
	case name == contract.TopicAgentOutput, topic.KernelOnly(name) != "":
		return fmt.Errorf("%w: %s is published by the kernel alone", contract.ErrDenied, name)
	case slices.ContainsFunc(s.Permissions.Publish, func(p string) bool { return topic.Match(p, name) }):
		return nil
	}
	return fmt.Errorf("%w: the manifest lacks \"permissions: {publish: [%s]}\"", contract.ErrDenied, name)
}

// mayCall checks the grant of a tool that an extension calls for itself.
func mayCall(s *kernel.Spec, name string) error {
	owner, _, _ := strings.Cut(name, "/")
	if s.Agent == nil && !slices.Contains(s.Permissions.Tools, name) &&
		!slices.Contains(s.Permissions.Tools, owner+"/*") {
		return fmt.Errorf("%w: the manifest lacks \"permissions: {tools: [%s]}\"", contract.ErrDenied, name)
	}
	return nil
}
