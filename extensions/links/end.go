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

// maxSummary bounds the text of a result, in bytes: an event holds 1 MiB of JSON,
// which may need six bytes for one of text.
const maxSummary = 128 << 10

// ending is how an exchange ends.
type ending struct {
	outcome string
	by      string // the agent that ends it; empty: the extension
	text    string // the conclusion, the last message, or the reason
	input   string // of the turn that ends it, if one does
	// noTurn: the initiator gets a record instead of a turn. No more turns may follow
	// from the event, of which the owner was told, or a person stopped everything.
	noTurn bool
	// discard: the result is not delivered.
	discard bool
}

// end ends x in one commit: both sides get a record, pending inputs are withdrawn,
// and the result is delivered, together with the results that x got and did not
// answer. The commit conflicts with a concurrent end of the place that gets the
// result, so that no result is lost.
func (l *links) end(ctx context.Context, x *exchange, e ending) (sdk.Effects, error) {
	if x.Over {
		return nil, fmt.Errorf("%w: exchange %s has already ended", contract.ErrInvalid, x.ID)
	}
	if e.outcome == concluded { // the conclusion answers its input
		x.removeUnanswered(e.input)
	}
	effects := sdk.Effects{sdk.Delete(openKey(x.From, x.Initiator, x.Peer))}
	unread := map[string]string{}
	for _, g := range x.Unanswered {
		if g.Input != e.input {
			effects = append(effects, sdk.Withdraw(g.Input))
		}
		switch text, err := l.unansweredText(ctx, x, g); {
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
	x.Summary = truncate(e.text, maxSummary, "the text was longer")
	for _, agent := range []string{x.Initiator, x.Peer} {
		effects = append(effects, x.record(agent, ID, x.endRecord(agent)+unread[agent], ""))
	}
	if e.discard {
		return append(effects, x.put()), nil
	}
	result, err := l.deliverResult(ctx, x, e.noTurn)
	return append(append(effects, result...), x.put()), err
}

// unansweredText returns the text of an input that will not be answered.
func (l *links) unansweredText(ctx context.Context, x *exchange, g pendingInput) (string, error) {
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
		return "", fmt.Errorf("parse input %q of exchange %s: %w", g.Input, x.ID, err)
	}
	v, err := l.k.Get(ctx, messageKey(x.ID, number))
	if err != nil {
		return "", fmt.Errorf("read message %d of exchange %s: %w", number, x.ID, err)
	}
	var m loggedMessage
	if v.Version != 0 {
		err = v.Decode(&m)
	}
	return fmt.Sprintf("This message from %s was not answered:\n\n%s", m.From, m.Text), err
}

// deliverResult delivers the result of x to its origin, or to the first open
// ancestor: an exchange, or a conversation.
func (l *links) deliverResult(ctx context.Context, x *exchange, noTurn bool) (sdk.Effects, error) {
	at, agent := x.From, x.Initiator
	for range maxAncestors {
		if at.Thread == "" {
			return l.deliverToConversation(ctx, x, at, noTurn)
		}
		parent, err := l.load(ctx, at.Thread)
		switch {
		case err != nil:
			return nil, err
		case parent == nil:
			at = origin{}
		case !parent.Over:
			x.Result = at.Session
			input := pendingInput{Input: resultKey(x.ID), Agent: agent, Result: x.ID}
			result := l.queueInput(parent, input, contract.InputResult, x.Peer, x.report(at == x.From))
			return sdk.Effects{result, parent.put()}, nil
		default:
			at, agent = parent.From, parent.Initiator
		}
	}
	return nil, nil
}

// maxAncestors bounds the search; each parent is older.
const maxAncestors = 1000

func resultKey(id string) string { return id + resultSuffix }

const resultSuffix = "/end"

func (l *links) deliverToConversation(
	ctx context.Context, x *exchange, at origin, noTurn bool,
) (sdk.Effects, error) {
	exists, err := l.conversationExists(ctx, at.Session)
	if err != nil {
		return nil, err
	}
	if !exists {
		l.log.Warn("result not delivered: the conversation was deleted", "exchange", x.ID, "session", at.Session)
		return nil, nil
	}
	x.Result = at.Session
	kind := contract.InputResult
	if noTurn {
		kind = contract.InputRecord
	}
	return sdk.Effects{sdk.Raw(&busv1.Input{
		Session: at.Session, Kind: kind, Sender: x.Peer, Text: x.report(at == x.From),
		DedupeKey: resultKey(x.ID), IfExists: true, Person: x.Principal.Person,
	})}, nil
}

// sessionExists reports whether a session exists.
func (l *links) sessionExists(ctx context.Context, session string) (bool, error) {
	if session == "" {
		return false, nil
	}
	_, err := l.k.Session(ctx, session)
	if errors.Is(err, contract.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// existsTTL is how long the existence of a conversation is cached. An input to a
// deleted one is dropped without harm; the check only avoids useless work.
const existsTTL = 10 * time.Second

// conversationExists reports whether a conversation exists, or did within existsTTL.
func (l *links) conversationExists(ctx context.Context, session string) (bool, error) {
	l.mu.Lock()
	known := l.now().Sub(l.seenSessions[session]) < existsTTL
	l.mu.Unlock()
	if known {
		return true, nil
	}
	exists, err := l.sessionExists(ctx, session)
	if exists {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.seenSessions) > 10_000 {
			clear(l.seenSessions)
		}
		l.seenSessions[session] = l.now()
	}
	return exists, err
}

// endFunc decides whether an exchange ends; without an outcome it does not.
type endFunc func(context.Context, *exchange) (ending, error)

// endMatching ends the open exchanges for which why returns an outcome. Each end is
// its own commit, because two may have the same origin.
func (l *links) endMatching(ctx context.Context, why endFunc) error {
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
		for tries := 0; errors.Is(err, contract.ErrConflict) && tries < maxRetries; tries++ {
			err = l.endOne(ctx, id, why)
		}
		if err != nil {
			failed = cmp.Or(failed, fmt.Errorf("end exchange %s: %w", id, err))
		}
	}
	return failed
}

// maxRetries bounds the retries after conflicts.
const maxRetries = 10

func (l *links) endOne(ctx context.Context, id string, why endFunc) error {
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
