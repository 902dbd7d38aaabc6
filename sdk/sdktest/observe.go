package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// WaitFor waits until reached reports true; it is asked again whenever something has
// changed in the kernel. It must not call the Kernel's waiting methods.
func (k *Kernel) WaitFor(what string, reached func() bool) {
	k.t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	for {
		changed := k.news.next()
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

// view reads the store.
func (k *Kernel) view(read func(journal.Reader) error) {
	k.t.Helper()
	if err := k.store.View(context.Background(), read); err != nil {
		k.t.Fatalf("sdktest: read the store: %v", err)
	}
}

// page is how many events are read at once.
const page = 1000

// Published is every event that the extension published on topics of a pattern, in
// order.
func (k *Kernel) Published(pattern string) (found []*busv1.Event) {
	k.t.Helper()
	id := k.ID()
	k.view(func(r journal.Reader) error {
		found = nil
		for after := int64(0); ; {
			events, err := r.Events(journal.EventFilter{After: after, Ascending: true, Limit: page})
			if err != nil {
				return err
			}
			for _, e := range events {
				if after = e.GetSeq(); e.GetSource() == id && topic.Match(pattern, e.GetTopic()) {
					found = append(found, e)
				}
			}
			if len(events) < page {
				return nil
			}
		}
	})
	return found
}

// Await waits until the extension has published on topics of a pattern and returns
// the first such event.
func (k *Kernel) Await(pattern string) *busv1.Event {
	k.t.Helper()
	return k.AwaitN(pattern, 1)[0]
}

// AwaitN waits until the extension has published n events on topics of a pattern and
// returns all there are.
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

// Stored decodes a key of the extension's store into v and returns its version; 0 if
// it does not exist.
func (k *Kernel) Stored(key string, v any) int64 {
	k.t.Helper()
	var value journal.KV
	k.view(func(r journal.Reader) (err error) {
		value, err = r.KVGet(k.ID(), key)
		return err
	})
	if value.Version == 0 {
		return 0
	}
	if b, ok := v.(*[]byte); ok {
		*b = value.Value
	} else if v != nil {
		k.decode(value.Value, v)
	}
	return value.Version
}

// Keeps reports whether the extension's value of a key keeps a file, by its hash.
func (k *Kernel) Keeps(key, hash string) (kept bool) {
	k.t.Helper()
	k.view(func(r journal.Reader) (err error) {
		kept, err = r.Keeps(journal.Keeper{Kind: journal.KeptByValue, Owner: k.ID(), Key: key}, hash)
		return err
	})
	return kept
}

// Put writes a key of the extension's store without telling it.
func (k *Kernel) Put(key string, value any) {
	k.t.Helper()
	id, b := k.ID(), encode(k.t, value)
	if id == "" {
		k.t.Fatal("sdktest: the extension has no id before its first start: set Options.ID")
	}
	err := journal.Do(context.Background(), k.store.Store, func(tx journal.Tx) error {
		_, err := tx.KVPut(id, key, b)
		return err
	})
	if err != nil {
		k.t.Fatalf("sdktest: put %s: %v", key, err)
	}
	k.news.tell()
}

// Keys lists the keys of the extension's store with a prefix, in order.
func (k *Kernel) Keys(prefix string) (keys []string) {
	k.t.Helper()
	k.view(func(r journal.Reader) error {
		keys = nil
		for after := ""; ; {
			values, err := r.KVScan(k.ID(), prefix, after, page)
			if err != nil {
				return err
			}
			for _, v := range values {
				after = v.Key
				keys = append(keys, v.Key)
			}
			if len(values) < page {
				return nil
			}
		}
	})
	return keys
}

// Readiness is what the kernel knows of the extension's readiness.
func (k *Kernel) Readiness() *extensionv1.Readiness {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.statuses[k.id]
	return &extensionv1.Readiness{State: s.Readiness, Detail: s.ReadinessDetail}
}

// AwaitReadiness waits until the extension says that it is in a state.
func (k *Kernel) AwaitReadiness(state extensionv1.Readiness_State) *extensionv1.Readiness {
	k.t.Helper()
	k.WaitFor("readiness "+state.String(), func() bool { return k.Readiness().GetState() == state })
	return k.Readiness()
}

// historyBytes is more than a history of a test has.
const historyBytes = 64 << 20

// History is the history of a session.
func (k *Kernel) History(session string) (rows []*busv1.Entry) {
	k.t.Helper()
	k.view(func(r journal.Reader) (err error) {
		rows, _, err = r.History(journal.ParseSessionID(session), 0, historyBytes)
		return err
	})
	return rows
}
