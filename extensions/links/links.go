// Package links is the extension that lets two agents talk, and delivers the
// result to the conversation that asked.
//
// A link has two sessions, link:A:B of agent A and link:B:A of agent B, which are
// created at the start. A message of A in its session becomes an input of B's, and
// the other way round; the final text of a turn is the reply. An exchange is one
// request: it has an initiator, the conversation it was begun in (which never
// changes), a number of messages and an outcome. Several exchanges may be open on
// one link; each is a thread of both sessions, so an agent sees the exchange of its
// turn and the summaries of earlier ones.
//
// Promises:
//   - An exchange ends, whatever the agents do: with a conclusion, when its messages
//     are used up (the count is never reset), after its idle time, when a turn on
//     it fails, or when the link or an agent is no longer available. Restarts do
//     not change this.
//   - Its end delivers one result, in the same commit, to the conversation it was
//     begun in. If that is an exchange that has ended, the result goes to where
//     that one was begun, and so on up to the first open one.
//   - A result that arrived on an exchange but was not answered before its end is
//     passed on with the result of that exchange.
//   - Each state change is in one commit with its consequences, under optimistic
//     locking: a message is passed on once, wherever a process is killed.
//   - Nothing is delivered on an exchange that has ended: pending inputs are
//     withdrawn, its tools return errors, and a late text is recorded on both sides
//     as not delivered.
//   - Each input brings the subject of the exchange and how to end it.
//   - Deleting a session ends its exchanges, and blocks nothing else.
//   - An exchange that is begun in a session S of a person or a group has its own
//     sessions, link:A:B:S and link:B:A:S, which belong to that person or group, too:
//     their agents use nothing that S may not, and see nothing of other exchanges on
//     the link.
//
// Exchanges are independent of each other; within one, each side is in order.
// Handlers and tools may run concurrently: conflicts are found by version.
// Not promised: that an agent says anything sensible, or concludes.
package links

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the extension's id.
const ID = "links"

// New returns the extension.
func New() sdk.Extension {
	l := &links{}
	return sdk.Extension{
		ID: ID,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			var c config
			if err := k.Config(&c); err != nil {
				return err
			}
			return l.start(ctx, k, k.Log(), time.Now, c)
		},
		Run:    func(ctx context.Context, _ *sdk.Kernel) error { return l.run(ctx) },
		Handle: l.handle,
		Tools:  l.tools(),
	}
}

// config is the links of config.yaml, as checked by the kernel.
type config struct {
	Links []link `json:"links"`
}

// Modes of a link.
const (
	conversation = "conversation"
	task         = "task" // the final text of the peer concludes
)

// link is one entry of the configuration.
type link struct {
	From        string `json:"from"`
	To          string `json:"to"`
	FromAbout   string `json:"from_about"`
	ToAbout     string `json:"to_about"`
	Mode        string `json:"mode"`
	MaxMessages int    `json:"max_messages"`
	IdleSeconds int64  `json:"idle_seconds"`
	Problem     string `json:"problem"` // why it is not active
}

// about describes an agent to the other one.
func (l *link) about(agent string) string {
	if agent == l.From {
		return l.FromAbout
	}
	return l.ToAbout
}

// peer returns the other agent; empty: the agent is not on this link.
func (l *link) peer(agent string) string {
	switch agent {
	case l.From:
		return l.To
	case l.To:
		return l.From
	}
	return ""
}

// sessionKey returns the key of self's side towards peer; within is the session of a
// person or a group that the exchange was begun in, if any.
func sessionKey(self, peer, within string) string {
	key := sidePrefix + self + ":" + peer
	if within != "" {
		key += ":" + within
	}
	return key
}

const sidePrefix = "link:"

// side is one end of a link.
type side struct{ self, peer, within string }

// parseSide parses the key of a side.
func parseSide(key string) (s side, ok bool) {
	both, ok := strings.CutPrefix(key, sidePrefix)
	if !ok {
		return side{}, false
	}
	s.self, both, ok = strings.Cut(both, ":")
	s.peer, s.within, _ = strings.Cut(both, ":")
	return s, ok
}

// kernel is the part of the kernel that links use.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Session(ctx context.Context, id string) (*kernelv1.Session, error)
}

var _ kernel = (*sdk.Kernel)(nil)

// errStopScan ends a scan early.
var errStopScan = errors.New("stop scan")

type links struct {
	k     kernel
	log   hclog.Logger
	now   func() time.Time
	links []*link

	mu           sync.Mutex
	sessions     map[string]string    // of the sides, by key
	seenSessions map[string]time.Time // when conversations were last found to exist
	next         time.Time            // of the next sweep; zero: none
	wake         chan struct{}        // next has become earlier
}

const (
	defaultMessages = 20
	defaultIdle     = 30 * time.Minute
)

// start creates the sessions of all active links.
func (l *links) start(ctx context.Context, k kernel, log hclog.Logger, now func() time.Time, c config) error {
	l.k, l.log, l.now = k, log, now
	l.next = time.Time{}
	l.links, l.wake = nil, make(chan struct{}, 1)
	l.sessions, l.seenSessions = map[string]string{}, map[string]time.Time{}
	for i := range c.Links {
		one := &c.Links[i]
		if one.MaxMessages <= 0 {
			one.MaxMessages = defaultMessages
		}
		if one.IdleSeconds <= 0 {
			one.IdleSeconds = int64(defaultIdle / time.Second)
		}
		l.links = append(l.links, one)
		if one.Problem != "" { // reported by the kernel
			continue
		}
		if err := l.open(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// open creates the sessions of a link, unless they exist.
func (l *links) open(ctx context.Context, one *link) error {
	results, err := l.k.Commit(ctx, ensure(one.From, one.To, "", ""), ensure(one.To, one.From, "", ""))
	if err != nil {
		return fmt.Errorf("create the sessions of the link between %s and %s: %w", one.From, one.To, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[sessionKey(one.From, one.To, "")] = results[0].GetSession()
	l.sessions[sessionKey(one.To, one.From, "")] = results[1].GetSession()
	return nil
}

// sessionsOf returns the sessions of a link, by agent.
func (l *links) sessionsOf(one *link) map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sessions := map[string]string{}
	for _, self := range []string{one.From, one.To} {
		if id := l.sessions[sessionKey(self, one.peer(self), "")]; id != "" {
			sessions[self] = id
		}
	}
	return sessions
}

// ensure creates the session of a side, unless it exists. A side within a session
// belongs to the person or the group of from.
func ensure(self, peer, within, from string) sdk.Effect {
	e := &busv1.SessionEnsure{
		Agent: self, Key: sessionKey(self, peer, within), Title: "link " + self + " → " + peer,
		Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}
	if within != "" {
		e.Within = from
	}
	return sdk.Raw(e)
}

// linkBetween returns the link of two agents, or nil.
func (l *links) linkBetween(a, b string) *link {
	for _, one := range l.links {
		if peer := one.peer(a); peer != "" && peer == b {
			return one
		}
	}
	return nil
}
