package sdktest

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// state is what outlives the extension.
type state struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change

	version   int64
	kv        map[string]*kernelv1.Value
	events    []*busv1.Event
	dedupe    map[string]*busv1.Event
	withdrawn map[string]bool // event ids
	tooLate   map[string]bool // event ids
	receipts  map[string]*busv1.CommitReceipt
	effects   []*busv1.Effect // all that were committed, in order
	failures  []error         // of the extension's next commits
	lanes     map[string]*busv1.Event
	calls     int64

	sessions map[string]*session
	pending  []*busv1.Event
	channels []*kernelv1.Channel
	commands []*kernelv1.Command
	presence sdk.Presence
	reports  []*extensionv1.Readiness
	drafts   []string
	watchers map[chan *busv1.Event][]string
}

type session struct {
	info    *kernelv1.Session
	entries []*busv1.Entry
}

func newState() *state {
	return &state{
		changed: make(chan struct{}), kv: map[string]*kernelv1.Value{},
		dedupe: map[string]*busv1.Event{}, withdrawn: map[string]bool{}, tooLate: map[string]bool{},
		receipts: map[string]*busv1.CommitReceipt{}, lanes: map[string]*busv1.Event{},
		sessions: map[string]*session{}, watchers: map[chan *busv1.Event][]string{},
	}
}

// notify wakes everyone who waits for a change; s.mu is held.
func (s *state) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// commit applies one commit of source, all of it or nothing.
func (s *state) commit(source string, c *busv1.Commit) *busv1.CommitReceipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if first := s.receipts[c.GetId()]; first != nil && c.GetId() != "" {
		return first
	}
	if c.GetLane() != "" {
		if _, held := s.lanes[c.GetLane()]; !held {
			return refusal(fmt.Errorf("lane %q: %w", c.GetLane(), contract.ErrStale))
		}
	}
	tx := &transaction{state: s, source: source, cause: s.lanes[c.GetLane()]}
	r := &busv1.CommitReceipt{}
	for i, e := range c.GetEffects() {
		result, err := tx.apply(e)
		if err != nil {
			tx.rollback()
			return refusal(fmt.Errorf("effect %d: %w", i+1, err))
		}
		r.Results = append(r.Results, result)
	}
	for _, e := range c.GetEffects() {
		s.effects = append(s.effects, proto.CloneOf(e))
	}
	for _, e := range tx.published {
		s.show(e)
	}
	if c.GetId() != "" {
		s.receipts[c.GetId()] = r
	}
	s.notify()
	return r
}

// commit applies a commit of the extension, unless it is to fail.
func (k *Kernel) commit(c *busv1.Commit) *busv1.CommitReceipt {
	s := k.state
	s.mu.Lock()
	if len(s.failures) > 0 {
		err := s.failures[0]
		s.failures = s.failures[1:]
		s.mu.Unlock()
		return refusal(err)
	}
	s.mu.Unlock()
	return s.commit(k.ID(), c)
}

func refusal(err error) *busv1.CommitReceipt {
	return &busv1.CommitReceipt{Error: contract.ToProto(err)}
}
