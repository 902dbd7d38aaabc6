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

// Outcomes of an exchange that are not outcomes of a turn.
const (
	concluded   = "concluded"
	capped      = "capped" // too many messages
	idle        = "idle"
	unavailable = "unavailable" // the link, a session or an agent is gone
)

// exchange is one request on a link.
type exchange struct {
	ID        string `json:"id"`
	Initiator string `json:"initiator"`
	Peer      string `json:"peer"`
	// Principal is for whom it was begun, and where.
	Principal contract.Principal `json:"principal,omitzero"`
	// From is the place it was begun in, and never changes.
	From origin `json:"initiated_from"`
	// Within is the session of a person or a group that it, or the first exchange that
	// led to it, was begun in; empty: it was begun for the household.
	Within string `json:"within,omitempty"`
	// IdleStreak counts the exchanges before it that ended idle, each begun in the
	// turn that got the result of the one before.
	IdleStreak int `json:"row,omitempty"`
	// Sides are its known sessions, by agent, if Within is set.
	Sides       map[string]string `json:"sides,omitempty"`
	Mode        string            `json:"mode"`
	MaxMessages int               `json:"max_messages"`
	IdleSeconds int64             `json:"idle_seconds"`

	Messages int       `json:"messages"` // of both sides
	Opened   time.Time `json:"opened_at"`
	Active   time.Time `json:"active_at"`
	// Unanswered are the inputs that have no reply yet.
	Unanswered []pendingInput `json:"unanswered,omitempty"`

	Over    bool      `json:"over"`
	Outcome string    `json:"outcome,omitempty"`
	Summary string    `json:"summary,omitempty"`
	EndedBy string    `json:"ended_by,omitempty"` // an agent; empty: the extension
	Ended   time.Time `json:"ended_at,omitzero"`
	// ConcludingInput is the input whose turn concluded: that turn may still have a text.
	ConcludingInput string `json:"last,omitempty"`
	// Result is the session that got the result; empty: none exists.
	Result string `json:"result_session,omitempty"`

	version int64
}

// origin is the place an exchange was begun in: a session, and an exchange in that
// session, if any.
type origin struct {
	Session string `json:"session"`
	Thread  string `json:"exchange,omitempty"`
}

// pendingInput is an input of one side. The kernel names it in each call and in the
// output of its turn.
type pendingInput struct {
	Input  string `json:"input"` // its dedupe key
	Agent  string `json:"agent"`
	Result string `json:"result,omitempty"` // exchange whose result it is; empty: a message
}

// other returns the agent on the other side; empty: the agent is on neither.
func (x *exchange) other(agent string) string {
	switch agent {
	case x.Initiator:
		return x.Peer
	case x.Peer:
		return x.Initiator
	}
	return ""
}

// key returns the key of the session of an agent's side.
func (x *exchange) key(agent string) string { return sessionKey(agent, x.other(agent), x.Within) }

// setSession notes the session of an agent's side.
func (x *exchange) setSession(agent, session string) {
	if x.Within == "" { // created at the start
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

// removeUnanswered marks an input as answered.
func (x *exchange) removeUnanswered(input string) {
	x.Unanswered = slices.DeleteFunc(x.Unanswered, func(g pendingInput) bool { return g.Input == input })
}

const (
	exchangePrefix = "x/"
	openPrefix     = "open/"
	messagePrefix  = "said/"
)

func exchangeKey(id string) string { return exchangePrefix + id }

// openKey is the key of the one open exchange that an agent has begun in a place
// with a peer.
func openKey(o origin, agent, peer string) string { return openPrefixOf(o, agent) + peer }

// openPrefixOf is the prefix of all open exchanges that an agent has begun in a
// place. An exchange identifies a place longer than its session, which can be
// deleted and created again.
func openPrefixOf(o origin, agent string) string {
	if o.Thread == "" {
		return openPrefix + o.Session + "/"
	}
	return openPrefix + o.Thread + "/" + agent + "/"
}

func (x *exchange) put() sdk.Effect { return sdk.PutAt(exchangeKey(x.ID), x, x.version) }

// load reads an exchange; nil: it does not exist.
func (l *links) load(ctx context.Context, id string) (*exchange, error) {
	v, err := l.k.Get(ctx, exchangeKey(id))
	if err != nil {
		return nil, fmt.Errorf("read exchange %s: %w", id, err)
	}
	if v.Version == 0 {
		return nil, nil //nolint:nilnil // does not exist
	}
	return decode(v)
}

func decode(v sdk.Value) (*exchange, error) {
	x := &exchange{version: v.Version}
	return x, v.Decode(x)
}

// hasOpenExchanges reports whether exchanges are open that an agent has begun on
// its side of x, or, without an agent, on either side.
func (l *links) hasOpenExchanges(ctx context.Context, x *exchange, agent string) (bool, error) {
	prefix := openPrefix + x.ID + "/"
	if agent != "" {
		prefix = openPrefixOf(origin{Thread: x.ID}, agent)
	}
	found := false
	err := l.k.Scan(ctx, prefix, func(sdk.Value) error {
		found = true
		return errStopScan
	})
	if found {
		return true, nil
	}
	return false, err
}

// sendMessage sends a message to the other side, and counts it.
func (l *links) sendMessage(x *exchange, from, text string) sdk.Effects {
	x.Messages++
	to, key := x.other(from), fmt.Sprintf("%s/%d", x.ID, x.Messages)
	return sdk.Effects{
		sdk.Put(messageKey(x.ID, x.Messages), loggedMessage{
			From: from, Text: truncate(text, maxLogged, "see the session"), At: l.now(),
		}),
		l.queueInput(x, pendingInput{Input: key, Agent: to}, contract.InputMessage, from, text),
	}
}

// queueInput queues an input that a side of x must answer.
func (l *links) queueInput(x *exchange, g pendingInput, kind, sender, text string) sdk.Effect {
	x.Unanswered = append(x.Unanswered, g)
	x.Active = l.now()
	return sdk.Raw(&busv1.Input{
		Agent: g.Agent, Key: x.key(g.Agent), Kind: kind, Sender: sender, Text: text,
		Thread: x.ID, DedupeKey: g.Input, Meta: l.frame(x, g.Agent), IfExists: true, Person: x.Principal.Person,
	})
}

// record adds a record to one side of x, without a turn.
func (x *exchange) record(agent, sender, text, thread string) sdk.Effect {
	return sdk.Raw(&busv1.Input{
		Agent: agent, Key: x.key(agent), Kind: contract.InputRecord, Sender: sender,
		Text: text, Thread: thread, IfExists: true,
	})
}

// loggedMessage is a message as shown to people.
type loggedMessage struct {
	From string    `json:"from"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// maxLogged is the stored length of a message, in bytes.
const maxLogged = 4 << 10

func messageKey(exchange string, message int) string {
	return fmt.Sprintf("%s%s/%06d", messagePrefix, exchange, message)
}

// truncate shortens a text to limit bytes and appends a note.
func truncate(text string, limit int, note string) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + " [truncated: " + note + "]"
}
