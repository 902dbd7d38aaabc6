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
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/topic"
)

// WaitFor waits until reached reports true; it is asked again whenever
// something has changed in the kernel. It must not call the Kernel's waiting
// methods.
func (k *Kernel) WaitFor(what string, reached func() bool) {
	k.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		k.state.mu.Lock()
		changed := k.state.changed
		k.state.mu.Unlock()
		if reached() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			k.t.Fatalf("sdktest: never came true within %s: %s", Patience, what)
		}
	}
}

// pollPause is the pause between two looks at what nothing announces.
const pollPause = time.Millisecond

// WaitUntil is WaitFor for what the kernel does not notice: it asks again and
// again.
func (k *Kernel) WaitUntil(what string, reached func() bool) {
	k.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for !reached() {
		select {
		case <-timeout.C:
			k.t.Fatalf("sdktest: never came true within %s: %s", Patience, what)
		case <-time.After(pollPause):
		}
	}
}

// Published is every event that the extension published on topics of a pattern,
// in order, without withdrawn ones.
func (k *Kernel) Published(pattern string) []*busv1.Event {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	var out []*busv1.Event
	for _, e := range k.state.events {
		if e.GetSource() == k.id && topic.Match(pattern, e.GetTopic()) && !k.state.withdrawn[e.GetId()] {
			out = append(out, e)
		}
	}
	return out
}

// Await waits until the extension has published on topics of a pattern and
// returns the first such event.
func (k *Kernel) Await(pattern string) *busv1.Event {
	k.t.Helper()
	return k.AwaitN(pattern, 1)[0]
}

// AwaitN waits until the extension has published n events on topics of a
// pattern and returns all there are.
func (k *Kernel) AwaitN(pattern string, n int) []*busv1.Event {
	k.t.Helper()
	var events []*busv1.Event
	k.WaitFor(fmt.Sprintf("%d events on %s", n, pattern), func() bool {
		events = k.Published(pattern)
		return len(events) >= n
	})
	return events
}

// Received is every message of a person that the extension reported.
func (k *Kernel) Received() []contract.UserMessage {
	k.t.Helper()
	return k.messages(k.Published(contract.TopicUserMessage))
}

// AwaitReceived waits for n messages of people and returns all there are.
func (k *Kernel) AwaitReceived(n int) []contract.UserMessage {
	k.t.Helper()
	return k.messages(k.AwaitN(contract.TopicUserMessage, n))
}

func (k *Kernel) messages(events []*busv1.Event) []contract.UserMessage {
	k.t.Helper()
	out := make([]contract.UserMessage, len(events))
	for i, e := range events {
		k.decode(e.GetPayload(), &out[i])
	}
	return out
}

func (k *Kernel) decode(b []byte, into any) {
	k.t.Helper()
	if err := json.Unmarshal(b, into); err != nil {
		k.t.Fatalf("sdktest: decode into %T: %v", into, err)
	}
}

// Withdrawn reports whether the extension has withdrawn the event.
func (k *Kernel) Withdrawn(eventID string) bool {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	return k.state.withdrawn[eventID]
}

// TakeDelivery says that the event's delivery has begun: it cannot be withdrawn
// any more.
func (k *Kernel) TakeDelivery(eventID string) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	k.state.tooLate[eventID] = true
}

// Committed is every effect that the extension committed, in order.
func (k *Kernel) Committed() []*busv1.Effect {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	return slices.Clone(k.state.effects)
}

// FailCommits refuses the next n commits, of whatever kind, with an error:
// contract.ErrConflict, contract.ErrFull.
func (k *Kernel) FailCommits(n int, err error) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	for range n {
		k.state.failures = append(k.state.failures, err)
	}
}

// Stored decodes a key of the extension's store into v and returns its version;
// 0 if it does not exist.
func (k *Kernel) Stored(key string, v any) int64 {
	k.t.Helper()
	k.state.mu.Lock()
	value := k.state.kv[key]
	k.state.mu.Unlock()
	if value == nil {
		return 0
	}
	if b, ok := v.(*[]byte); ok {
		*b = value.GetValue()
	} else if v != nil {
		k.decode(value.GetValue(), v)
	}
	return value.GetVersion()
}

// Put writes a key of the extension's store, behind its back.
func (k *Kernel) Put(key string, value any) {
	k.t.Helper()
	b := encode(k.t, value)
	s := k.state
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.kv[key] = &kernelv1.Value{Key: key, Value: b, Version: s.version}
	s.notify()
}

// Keys lists the keys of the extension's store with a prefix, in order.
func (k *Kernel) Keys(prefix string) []string {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	var keys []string
	for key := range k.state.kv {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Readiness is what the extension last said of itself.
func (k *Kernel) Readiness() *extensionv1.Readiness {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	if n := len(k.state.reports); n > 0 {
		return k.state.reports[n-1]
	}
	return nil
}

// AwaitReadiness waits until the extension says that it is in a state.
func (k *Kernel) AwaitReadiness(state extensionv1.Readiness_State) *extensionv1.Readiness {
	k.t.Helper()
	k.WaitFor("readiness "+state.String(), func() bool { return k.Readiness().GetState() == state })
	return k.Readiness()
}

// Drafts is every text that the extension's turns showed as a draft.
func (k *Kernel) Drafts() []string {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	return slices.Clone(k.state.drafts)
}

// SetSession makes a session with a history; the id is taken from it.
func (k *Kernel) SetSession(info *kernelv1.Session, entries ...*busv1.Entry) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	for i, e := range entries {
		e.Seq = int64(i) + 1
	}
	k.state.sessions[info.GetId()] = &session{info: info, entries: entries}
	k.state.notify()
}

// History is the history of a session.
func (k *Kernel) History(id string) []*busv1.Entry {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	s := k.state.sessions[id]
	if s == nil {
		return nil
	}
	out := make([]*busv1.Entry, len(s.entries))
	for i, e := range s.entries {
		out[i] = proto.CloneOf(e)
	}
	return out
}

// SetPending replaces the inputs that wait behind the one being handled.
func (k *Kernel) SetPending(events ...*busv1.Event) {
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	k.state.pending = events
}

// Publish accepts an event of another source: watchers see it.
func (k *Kernel) Publish(source, topic string, payload any) *busv1.Event {
	k.t.Helper()
	b := encode(k.t, payload)
	receipt := k.state.commit(source, &busv1.Commit{Effects: []*busv1.Effect{
		{Kind: &busv1.Effect_Publish{Publish: &busv1.Publish{Topic: topic, Payload: b}}},
	}})
	if err := contract.FromProto(receipt.GetError()); err != nil {
		k.t.Fatalf("sdktest: publish %s: %v", topic, err)
	}
	k.state.mu.Lock()
	defer k.state.mu.Unlock()
	return k.state.events[len(k.state.events)-1]
}

// AwaitWatcher waits until the extension watches.
func (k *Kernel) AwaitWatcher() {
	k.t.Helper()
	k.WaitFor("a watcher", func() bool {
		k.state.mu.Lock()
		defer k.state.mu.Unlock()
		return len(k.state.watchers) > 0
	})
}
