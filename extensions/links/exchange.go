package links

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// Ends of an exchange that are no outcome of a turn.
const (
	concluded   = "concluded"
	cappedEnd   = "capped" // its messages are used up
	idleEnd     = "idle"
	unavailable = "unavailable" // the link, a side of it or who began it is not there any more
)

// exchange is one errand on a link.
type exchange struct {
	ID        string `json:"id"`
	Initiator string `json:"initiator"`
	Peer      string `json:"peer"`
	// From is where it was begun, and never changes.
	From origin `json:"initiated_from"`
	// Within is the session where others read along, in which it or the first of
	// those that it followed from was begun; empty: nobody does.
	Within string `json:"within,omitempty"`
	// Row is how many exchanges before it ended because nothing was said, each begun
	// in the turn that heard the end of the one before.
	Row int `json:"row,omitempty"`
	// Sides is the sessions within it, by their agents, as far as they are known.
	Sides       map[string]string `json:"sides,omitempty"`
	Mode        string            `json:"mode"`
	MaxMessages int               `json:"max_messages"`
	IdleSeconds int64             `json:"idle_seconds"`

	Messages int       `json:"messages"` // of both sides
	Opened   time.Time `json:"opened_at"`
	Active   time.Time `json:"active_at"`
	// Unanswered is what the sides were given and have not answered yet.
	Unanswered []given `json:"unanswered,omitempty"`

	Over    bool      `json:"over"`
	Outcome string    `json:"outcome,omitempty"`
	Summary string    `json:"summary,omitempty"`
	EndedBy string    `json:"ended_by,omitempty"` // an agent; empty: the extension
	Ended   time.Time `json:"ended_at,omitzero"`
	// Last is the input whose turn has concluded: it may still have a text.
	Last string `json:"last,omitempty"`
	// Result is the session that was told; empty: none could be.
	Result string `json:"result_session,omitempty"`

	version int64
}

// origin is where an exchange was begun: a session, and the exchange of which
// that was a part, if it was one.
type origin struct {
	Session string `json:"session"`
	Thread  string `json:"exchange,omitempty"`
}

// given is an input of one side. The kernel names it with each call and with the
// output of the turn that answers it.
type given struct {
	Input  string `json:"input"` // its dedupe key
	Agent  string `json:"agent"`
	Result string `json:"result,omitempty"` // the exchange whose result it is; empty: a message
}

// other is the agent on the other side; empty: the agent is on neither.
func (x *exchange) other(agent string) string {
	switch agent {
	case x.Initiator:
		return x.Peer
	case x.Peer:
		return x.Initiator
	}
	return ""
}

// key is that of the session of an agent's side.
func (x *exchange) key(agent string) string { return sessionKey(agent, x.other(agent), x.Within) }

// spokeIn notes the session of an agent's side.
func (x *exchange) spokeIn(agent, session string) {
	if x.Within == "" { // it is there from the start
		return
	}
	if x.Sides == nil {
		x.Sides = map[string]string{}
	}
	x.Sides[agent] = session
}

func (x *exchange) idleAt() time.Time {
	return x.Active.Add(time.Duration(x.IdleSeconds) * time.Second)
}

// answered takes an input out of those that are not answered.
func (x *exchange) answered(input string) {
	x.Unanswered = slices.DeleteFunc(x.Unanswered, func(g given) bool { return g.Input == input })
}

const (
	exchangePrefix = "x/"
	openPrefix     = "open/"
	saidPrefix     = "said/"
)

func exchangeKey(id string) string { return exchangePrefix + id }

// openKey holds the id of the open exchange that an agent has begun in one place
// with a peer; there is one at most.
func openKey(o origin, agent, peer string) string { return openedPrefix(o, agent) + peer }

// openedPrefix is that of all open exchanges that an agent has begun in a place.
// The side of a link may be made anew; the exchange stays the same.
func openedPrefix(o origin, agent string) string {
	if o.Thread == "" {
		return openPrefix + o.Session + "/"
	}
	return openPrefix + o.Thread + "/" + agent + "/"
}

func (x *exchange) put() sdk.Effect { return sdk.PutAt(exchangeKey(x.ID), x, x.version) }

// load reads an exchange; nil: there is none.
func (l *links) load(ctx context.Context, id string) (*exchange, error) {
	v, err := l.k.Get(ctx, exchangeKey(id))
	if err != nil {
		return nil, fmt.Errorf("read the exchange %s: %w", id, err)
	}
	if v.Version == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	return decode(v)
}

func decode(v sdk.Value) (*exchange, error) {
	x := &exchange{version: v.Version}
	return x, v.Decode(x)
}

// waits reports whether exchanges are open that an agent has begun on its side of
// x, or, without an agent, that were begun on either.
func (l *links) waits(ctx context.Context, x *exchange, agent string) (bool, error) {
	prefix := openPrefix + x.ID + "/"
	if agent != "" {
		prefix = openedPrefix(origin{Thread: x.ID}, agent)
	}
	found := false
	err := l.k.Scan(ctx, prefix, func(sdk.Value) error {
		found = true
		return errEnough
	})
	if found {
		return true, nil
	}
	return false, err
}

// message has the other side hear what an agent says, and counts it.
func (l *links) message(x *exchange, from, text string) sdk.Effects {
	x.Messages++
	to, key := x.other(from), fmt.Sprintf("%s/%d", x.ID, x.Messages)
	return sdk.Effects{
		sdk.Put(saidKey(x.ID, x.Messages), said{From: from, Text: cut(text, maxNoted, "the session has all of it"), At: l.now()}),
		l.give(x, given{Input: key, Agent: to}, contract.InputMessage, from, text),
	}
}

// give queues something that a side of x is to answer.
func (l *links) give(x *exchange, g given, kind, sender, text string) sdk.Effect {
	x.Unanswered = append(x.Unanswered, g)
	x.Active = l.now()
	return sdk.Raw(&busv1.Input{
		Agent: g.Agent, Key: x.key(g.Agent), Kind: kind, Sender: sender, Text: text,
		Thread: x.ID, DedupeKey: g.Input, Meta: l.frame(x, g.Agent), IfExists: true,
	})
}

// record is something to know on one side of x, without a turn.
func (x *exchange) record(agent, sender, text, thread string) sdk.Effect {
	return sdk.Raw(&busv1.Input{
		Agent: agent, Key: x.key(agent), Kind: contract.InputRecord, Sender: sender, Text: text, Thread: thread, IfExists: true,
	})
}

// said is a message as people read it.
type said struct {
	From string    `json:"from"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// maxNoted is the most of a message that is kept beside the sessions.
const maxNoted = 4 << 10

func saidKey(exchange string, message int) string {
	return fmt.Sprintf("%s%s/%06d", saidPrefix, exchange, message)
}

// cut is the first part of a text, and where the rest is.
func cut(text string, limit int, rest string) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " [cut: " + rest + "]"
}
