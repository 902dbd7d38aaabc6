package links

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// maxSummary is the most bytes of what is told of an end; an event holds 1 MiB
// of JSON, which may need six bytes for one of text.
const maxSummary = 128 << 10

// ending is how an exchange ends.
type ending struct {
	outcome string
	by      string // the agent that ends it; empty: the extension
	text    string // the conclusion, or what was said last, or why
	input   string // of the turn that ends it, if one does
	// spent says that the turns which may follow from one event are used up: a
	// person was told that, and who began the exchange can only take note of it.
	spent bool
}

// end ends x: in one commit both sides take note of it, what they have not begun
// with is withdrawn, and whoever waits for x has its result. With it are passed on
// the results that came in and were not answered. The place that is told may be
// written under a new version only, so that it cannot end at the same moment
// without knowing of the result.
func (l *links) end(ctx context.Context, x *exchange, e ending) (sdk.Effects, error) {
	if x.Over {
		return nil, fmt.Errorf("%w: the exchange %s is over already", contract.ErrInvalid, x.ID)
	}
	if e.outcome == concluded { // what it was about stands in the conclusion
		x.answered(e.input)
	}
	effects := sdk.Effects{sdk.Delete(openKey(x.From, x.Initiator, x.Peer))}
	unread := map[string]string{}
	for _, g := range x.Unanswered {
		if g.Input != e.input {
			effects = append(effects, sdk.Withdraw(g.Input))
		}
		switch text, err := l.unanswered(ctx, x, g); {
		case err != nil:
			return nil, err
		case g.Result != "":
			e.text = strings.TrimSpace(e.text + "\n\n" + text)
		case g.Input != e.input:
			unread[g.Agent] += "\n\n" + text
		}
	}
	x.Unanswered = nil
	x.Over, x.Outcome, x.EndedBy, x.Ended = true, e.outcome, e.by, l.now()
	x.Summary = cut(e.text, maxSummary, "it was longer")
	for _, agent := range []string{x.Initiator, x.Peer} {
		effects = append(effects, x.record(agent, ID, x.epitaph(agent)+unread[agent], ""))
	}
	told, err := l.tell(ctx, x, e.spent)
	return append(append(effects, told...), x.put()), err
}

// unanswered is what an input said that nobody answers any more.
func (l *links) unanswered(ctx context.Context, x *exchange, g given) (string, error) {
	if g.Result != "" {
		of, err := l.load(ctx, g.Result)
		if err != nil || of == nil {
			return "", err
		}
		return fmt.Sprintf("%s had received this from %s:\n\n%s", g.Agent, of.Peer, of.report(false)), nil
	}
	_, n, _ := strings.Cut(g.Input, "/")
	number, err := strconv.Atoi(n)
	if err != nil {
		return "", fmt.Errorf("the input %q of the exchange %s has no number: %w", g.Input, x.ID, err)
	}
	v, err := l.k.Get(ctx, saidKey(x.ID, number))
	if err != nil {
		return "", fmt.Errorf("read what was said in the exchange %s: %w", x.ID, err)
	}
	var m said
	if v.Version != 0 {
		err = v.Decode(&m)
	}
	return fmt.Sprintf("%s had said this, and it was not answered any more:\n\n%s", m.From, m.Text), err
}

// tell gives the result of x to the first place on the way up from where it was
// begun that can hear it: an exchange that is open, or a conversation.
func (l *links) tell(ctx context.Context, x *exchange, spent bool) (sdk.Effects, error) {
	at, agent := x.From, x.Initiator
	for range maxHops {
		if at.Thread == "" {
			return l.tellConversation(ctx, x, at, spent)
		}
		above, err := l.load(ctx, at.Thread)
		switch {
		case err != nil:
			return nil, err
		case above == nil:
			at = origin{}
		case !above.Over:
			x.Result = at.Session
			heard := l.give(above, given{Input: resultKey(x.ID), Agent: agent, Result: x.ID}, contract.InputResult, x.Peer, x.report(at == x.From))
			return sdk.Effects{heard, above.put()}, nil
		default:
			at, agent = above.From, above.Initiator
		}
	}
	return nil, nil
}

// maxHops bounds the way up; each step leads to an older exchange.
const maxHops = 1000

func resultKey(id string) string { return id + resultSuffix }

const resultSuffix = "/end"

func (l *links) tellConversation(ctx context.Context, x *exchange, at origin, spent bool) (sdk.Effects, error) {
	listens, err := l.listens(ctx, at.Session)
	if err != nil {
		return nil, err
	}
	if !listens {
		l.log.Warn("the conversation is gone that could be told what came of an exchange", "exchange", x.ID, "session", at.Session)
		return nil, nil
	}
	x.Result = at.Session
	kind := contract.InputResult
	if spent {
		kind = contract.InputRecord
	}
	return sdk.Effects{sdk.Raw(&busv1.Input{
		Session: at.Session, Kind: kind, Sender: x.Peer, Text: x.report(at == x.From), DedupeKey: resultKey(x.ID), IfExists: true,
	})}, nil
}

// there reports whether a session exists.
func (l *links) there(ctx context.Context, session string) (bool, error) {
	if session == "" {
		return false, nil
	}
	_, err := l.k.Session(ctx, session)
	if errors.Is(err, contract.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// seen is how long a conversation that was there is taken to be there. What is
// queued for one that is not is lost without harm; this is about not working for
// nobody.
const seen = 10 * time.Second

// listens reports whether a conversation still waits for something.
func (l *links) listens(ctx context.Context, session string) (bool, error) {
	l.mu.Lock()
	known := l.now().Sub(l.listened[session]) < seen
	l.mu.Unlock()
	if known {
		return true, nil
	}
	there, err := l.there(ctx, session)
	if there {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.listened) > 10_000 {
			clear(l.listened)
		}
		l.listened[session] = l.now()
	}
	return there, err
}

// endThose ends the open exchanges for which why gives an end. Each end is a
// commit of its own: two may lead to the same place.
func (l *links) endThose(ctx context.Context, why func(context.Context, *exchange) (ending, error)) error {
	var ids []string
	err := l.k.Scan(ctx, openPrefix, func(v sdk.Value) error {
		var id string
		if err := v.Decode(&id); err != nil {
			return err
		}
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the open exchanges: %w", err)
	}
	var failed error
	for _, id := range ids {
		err := l.endOne(ctx, id, why)
		for tries := 0; errors.Is(err, contract.ErrConflict) && tries < maxConflicts; tries++ {
			err = l.endOne(ctx, id, why)
		}
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("end the exchange %s: %w", id, err))
		}
	}
	return failed
}

// maxConflicts is how often an end is tried again that others were faster than.
const maxConflicts = 10

func (l *links) endOne(ctx context.Context, id string, why func(context.Context, *exchange) (ending, error)) error {
	x, err := l.load(ctx, id)
	if err != nil || x == nil || x.Over {
		return err
	}
	e, err := why(ctx, x)
	if err != nil || e.outcome == "" {
		return err
	}
	effects, err := l.end(ctx, x, e)
	if err != nil {
		return err
	}
	_, err = l.k.Commit(ctx, effects...)
	return err
}
