// Package links is the extension that lets two agents talk, and brings what came
// of it back to where it was asked for.
//
// A link has two sessions, link:A:B of agent A and link:B:A of B, which exist
// from the start. What A says on its side is heard on B's, and the other way
// round; the final text of a turn is the reply. One errand is an exchange: who
// began it, from which conversation (written once), how many messages it took,
// how it ended. Several exchanges may be open on one link at once; each is a
// thread of both sessions, so that an agent sees one of them, and what came of
// those that are over.
//
// Promises:
//   - An exchange ends, whatever the agents do: by a conclusion, when its messages
//     are used up (the count is never reset), when nothing happened for its idle
//     time, when a turn on it fails, when the link or an agent is not there any
//     more. Restarts change nothing about that.
//   - Its end yields one result, in the commit that ends it, to the conversation
//     from which it was begun; if that was an exchange that is over too, to where
//     that one was begun, and so on up to the first that is open.
//   - A result that reached an exchange which ended before it was answered is
//     passed on with the result of that one.
//   - State changes by version, in the commit of what follows from it: killed at
//     any instant, a message is passed on once.
//   - Nothing is said on an exchange that is over: what no turn has begun with is
//     withdrawn, its tools refuse, and a text that comes too late is recorded on
//     both sides as not delivered.
//   - A turn on a link knows what the exchange is about and how to end it: each
//     input brings that along.
//   - A session that is deleted ends its exchanges, and holds nothing else up.
//   - What is begun where others read along has sessions of its own, link:A:B:S and
//     link:B:A:S for the session S, which others read along in, too: its agents
//     are given nothing private, and see nothing of what was said on the link
//     for somebody else.
//
// Exchanges are independent of each other; within one, each side is in order.
// Handlers and tools may run at once: versions, not locks, keep them apart.
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

// New is the extension.
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

// config is what the kernel makes of the links of config.yaml.
type config struct {
	Links []link `json:"links"`
}

// Modes of a link.
const (
	conversation = "conversation"
	task         = "task" // the final text of the agent that was asked concludes
)

// link is one line of the configuration.
type link struct {
	From        string `json:"from"`
	To          string `json:"to"`
	FromAbout   string `json:"from_about"`
	ToAbout     string `json:"to_about"`
	Mode        string `json:"mode"`
	MaxMessages int    `json:"max_messages"`
	IdleSeconds int64  `json:"idle_seconds"`
	Problem     string `json:"problem"` // why it is not in force
}

// about is what the other agent is told of one.
func (l *link) about(agent string) string {
	if agent == l.From {
		return l.FromAbout
	}
	return l.ToAbout
}

// peer is the other agent; empty: the link is none of this one's.
func (l *link) peer(agent string) string {
	switch agent {
	case l.From:
		return l.To
	case l.To:
		return l.From
	}
	return ""
}

// sessionKey is the key of the side that self has towards peer, within a session
// where others read along, if there is one.
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

// sideOf reads a key.
func sideOf(key string) (s side, ok bool) {
	both, ok := strings.CutPrefix(key, sidePrefix)
	if !ok {
		return side{}, false
	}
	s.self, both, ok = strings.Cut(both, ":")
	s.peer, s.within, _ = strings.Cut(both, ":")
	return s, ok
}

// kernel is what links need of the kernel.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Session(ctx context.Context, id string) (*kernelv1.Session, error)
}

var _ kernel = (*sdk.Kernel)(nil)

// errEnough ends a scan that has found what it was for.
var errEnough = errors.New("enough")

type links struct {
	k     kernel
	log   hclog.Logger
	now   func() time.Time
	links []*link

	mu       sync.Mutex
	sessions map[string]string    // of the sides, by key
	listened map[string]time.Time // when conversations were there
	next     time.Time            // when to look for exchanges that are idle; zero: never
	wake     chan struct{}        // it has become earlier
}

const (
	defaultMessages = 20
	defaultIdle     = 30 * time.Minute
)

// start makes the sessions of all links, and leaves those alone that cannot be
// in force.
func (l *links) start(ctx context.Context, k kernel, log hclog.Logger, now func() time.Time, c config) error {
	l.k, l.log, l.now = k, log, now
	l.next = time.Time{}
	l.links, l.wake = nil, make(chan struct{}, 1)
	l.sessions, l.listened = map[string]string{}, map[string]time.Time{}
	for i := range c.Links {
		one := &c.Links[i]
		if one.MaxMessages <= 0 {
			one.MaxMessages = defaultMessages
		}
		if one.IdleSeconds <= 0 {
			one.IdleSeconds = int64(defaultIdle / time.Second)
		}
		l.links = append(l.links, one)
		if one.Problem != "" { // the kernel has said so
			continue
		}
		if err := l.open(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// open makes the sessions of a link, unless they exist.
func (l *links) open(ctx context.Context, one *link) error {
	results, err := l.k.Commit(ctx, ensure(one.From, one.To, "", ""), ensure(one.To, one.From, "", ""))
	if err != nil {
		return fmt.Errorf("make the sessions of the link between %s and %s: %w", one.From, one.To, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[sessionKey(one.From, one.To, "")] = results[0].GetSession()
	l.sessions[sessionKey(one.To, one.From, "")] = results[1].GetSession()
	return nil
}

// sessionsOf is the sessions of a link, by their agents.
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

// ensure makes a side, unless it exists. One within a session is read along by
// whoever reads along in the session from which it is made.
func ensure(self, peer, within, from string) sdk.Effect {
	e := &busv1.SessionEnsure{
		Agent: self, Key: sessionKey(self, peer, within), Outbound: &busv1.Outbound{Kind: busv1.Outbound_KIND_EXTENSION},
	}
	if within != "" {
		e.Within = from
	}
	return sdk.Raw(e)
}

// between is the link of two agents; nil: there is none.
func (l *links) between(a, b string) *link {
	for _, one := range l.links {
		if peer := one.peer(a); peer != "" && peer == b {
			return one
		}
	}
	return nil
}
