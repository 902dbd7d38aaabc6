package links

import (
	"cmp"
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
	unavailable = "unavailable" // the link or an agent is not there any more
)

// exchange is one errand on a link.
type exchange struct {
	ID        string `json:"id"`
	Initiator string `json:"initiator"`
	Peer      string `json:"peer"`
	// From is where it was begun, and never changes.
	From        origin `json:"initiated_from"`
	Mode        string `json:"mode"`
	MaxMessages int    `json:"max_messages"`
	IdleSeconds int64  `json:"idle_seconds"`

	Messages int       `json:"messages"` // of both sides
	Opened   time.Time `json:"opened_at"`
	Active   time.Time `json:"active_at"`

	Over    bool      `json:"over"`
	Outcome string    `json:"outcome,omitempty"`
	Summary string    `json:"summary,omitempty"`
	EndedBy string    `json:"ended_by,omitempty"` // an agent; empty: the extension
	Ended   time.Time `json:"ended_at,omitzero"`
	// Result is the session that was told; empty: none could be.
	Result string `json:"result_session,omitempty"`

	// Each input of a side makes one turn there, and each turn one output, in the
	// same order: so the counts say which input an output is about.
	Heard  map[string]int `json:"heard"`             // inputs, by agent
	Spoken map[string]int `json:"spoken"`            // outputs
	Last   int            `json:"last,omitempty"`    // the turn of EndedBy that concluded
	Owed   []owed         `json:"results,omitempty"` // results that a side has not answered yet

	version int64
}

// origin is where an exchange was begun: a session, and the exchange of which
// that was a part, if it was one.
type origin struct {
	Session string `json:"session"`
	Thread  string `json:"exchange,omitempty"`
}

// owed is the result of another exchange that a side of this one was given.
type owed struct {
	Agent string `json:"agent"`
	Turn  int    `json:"turn"` // of Heard
	From  string `json:"from"` // whose result
	Text  string `json:"text"`
}

// other is the agent on the other side.
func (x *exchange) other(agent string) string {
	if agent == x.Initiator {
		return x.Peer
	}
	return x.Initiator
}

func (x *exchange) idleAt() time.Time {
	return x.Active.Add(time.Duration(x.IdleSeconds) * time.Second)
}

const (
	exchangePrefix = "x/"
	openPrefix     = "open/"
	saidPrefix     = "said/"
)

func exchangeKey(id string) string { return exchangePrefix + id }

// openKey holds the id of the open exchange of an origin with a peer, of which
// there is one at most.
func openKey(o origin, peer string) string { return childrenPrefix(o) + peer }

func childrenPrefix(o origin) string { return openPrefix + o.Session + "/" + o.Thread + "/" }

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
	if err := v.Decode(x); err != nil {
		return nil, err
	}
	if x.Heard == nil {
		x.Heard = map[string]int{}
	}
	if x.Spoken == nil {
		x.Spoken = map[string]int{}
	}
	return x, nil
}

// children reports whether exchanges are open that were begun on one side of x.
func (l *links) children(ctx context.Context, x *exchange, session string) (found bool, err error) {
	err = l.k.Scan(ctx, childrenPrefix(origin{session, x.ID}), func(sdk.Value) error {
		found = true
		return nil
	})
	return found, err
}

// message has the other side hear what an agent says, and counts it.
func (l *links) message(x *exchange, from, text string) sdk.Effects {
	to := x.other(from)
	x.Messages++
	x.Heard[to]++
	x.Active = l.now()
	return sdk.Effects{
		l.note(x, from, text),
		input(to, from, contract.InputMessage, from, text, x.ID, fmt.Sprintf("%s/%s/%d", x.ID, to, x.Heard[to])),
	}
}

// maxNoted is the most of a message that links show keeps.
const maxNoted = 4 << 10

// said is a message as people read it.
type said struct {
	From string    `json:"from"`
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

func (l *links) note(x *exchange, from, text string) sdk.Effect {
	if len(text) > maxNoted {
		text = strings.ToValidUTF8(text[:maxNoted], "") + " [cut: the session has all of it]"
	}
	return sdk.Put(fmt.Sprintf("%s%s/%06d", saidPrefix, x.ID, x.Messages), said{From: from, Text: text, At: l.now()})
}

// input queues something on the side that self has towards peer.
func input(self, peer, kind, sender, text, thread, dedupe string) sdk.Effect {
	return sdk.Raw(&busv1.Input{
		Agent: self, Key: sessionKey(self, peer), Kind: kind, Sender: sender, Text: text, Thread: thread, DedupeKey: dedupe,
	})
}

// record is something to know on one side of x, without a turn.
func (x *exchange) record(self, sender, text, thread string) sdk.Effect {
	return input(self, x.other(self), contract.InputRecord, sender, text, thread, "")
}

// finish ends x: in one commit both sides take note of it, and whoever waits for
// it has its result. The origin may be told under a new version only, so that it
// cannot end at the same moment without knowing of the result.
func (l *links) finish(ctx context.Context, x *exchange, outcome, by, text string) (sdk.Effects, error) {
	if x.Over {
		return nil, fmt.Errorf("%w: the exchange %s is over already", contract.ErrInvalid, x.ID)
	}
	if outcome == unavailable { // no turn will be about them any more
		for _, o := range x.Owed {
			text = strings.TrimSpace(text + "\n\n" + o.unanswered())
		}
		x.Owed = nil
	}
	now := l.now()
	x.Over, x.Outcome, x.Summary, x.EndedBy, x.Ended, x.Active = true, outcome, text, by, now, now
	if by != "" {
		x.Last = x.Spoken[by] + 1
	}
	to, parent, err := l.waiting(ctx, x.From)
	if err != nil {
		return nil, err
	}
	effects := sdk.Effects{sdk.Delete(openKey(x.From, x.Peer))}
	for _, agent := range []string{x.Initiator, x.Peer} {
		effects = append(effects, x.record(agent, ID, x.epitaph(agent), ""))
	}
	effects = append(effects, l.result(x, to, parent, x.Peer, x.report(to), "end")...)
	return append(effects, x.put()), nil
}

// waiting is the first open place on the way up from where an exchange was
// begun: a conversation, or an exchange that is open.
func (l *links) waiting(ctx context.Context, o origin) (origin, *exchange, error) {
	for range maxHops {
		if o.Thread == "" {
			return o, nil, nil
		}
		parent, err := l.load(ctx, o.Thread)
		switch {
		case err != nil:
			return o, nil, err
		case parent == nil:
			return origin{}, nil, nil
		case !parent.Over:
			return o, parent, nil
		}
		o = parent.From
	}
	return origin{}, nil, nil
}

// maxHops bounds the way up; each step leads to an older exchange.
const maxHops = 1000

// result tells a place what came of x.
func (l *links) result(x *exchange, to origin, parent *exchange, sender, text, which string) sdk.Effects {
	x.Result = cmp.Or(to.Session, x.Result)
	if to.Session == "" {
		l.log.Warn("nobody is there any more who could be told what came of an exchange", "exchange", x.ID)
		return nil
	}
	effects := sdk.Effects{sdk.Raw(&busv1.Input{
		Session: to.Session, Kind: contract.InputResult, Sender: sender, Text: text, Thread: to.Thread, DedupeKey: x.ID + "/" + which,
	})}
	if parent == nil {
		return effects
	}
	agent := parent.Initiator
	if s := l.sides[to.Session]; s != nil {
		agent = s.self
	}
	parent.Heard[agent]++
	parent.Owed = append(parent.Owed, owed{Agent: agent, Turn: parent.Heard[agent], From: sender, Text: text})
	parent.Active = l.now()
	return append(effects, parent.put())
}

// answered takes the result out that a turn was about, if it was about one.
func (x *exchange) answered(agent string, turn int) (owed, bool) {
	i := slices.IndexFunc(x.Owed, func(o owed) bool { return o.Agent == agent && o.Turn == turn })
	if i < 0 {
		return owed{}, false
	}
	o := x.Owed[i]
	x.Owed = slices.Delete(x.Owed, i, i+1)
	return o, true
}
