package links

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// noReply is the answer of an agent that sends no message.
const noReply = "NO_REPLY"

// handle passes the output of one side to the other, and ends what a person stopped.
func (l *links) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	switch e.Topic {
	case contract.TopicAgentOutput:
	case contract.TopicStopped:
		return l.stopped(ctx, e)
	case contract.TopicPersonRevoked:
		return nil, l.revoked(ctx, e)
	default:
		return nil, sdk.Drop(ID + " does not handle " + e.Topic)
	}
	var out contract.AgentOutput
	if err := e.Decode(&out); err != nil {
		return nil, err
	}
	at, ours := parseSide(out.Key)
	self := at.self
	if !ours {
		return nil, nil
	}
	if out.Outcome == contract.OutcomeCancelled {
		switch exists, err := l.sessionExists(ctx, out.Session); {
		case err != nil:
			return nil, err
		case !exists:
			return nil, l.sideDeleted(ctx, at, e.CreatedAt)
		}
	}
	if out.Thread == "" { // outside of an exchange
		return nil, nil
	}
	x, err := l.load(ctx, out.Thread)
	switch {
	case err != nil:
		return nil, err
	case x == nil || x.other(self) == "":
		l.log.Warn("output on an unknown exchange", "exchange", out.Thread, "session", out.Session)
		return nil, nil
	case x.Over:
		return l.lateOutput(x, self, out), nil
	}
	x.setSession(self, out.Session)
	if out.Outcome != contract.OutcomeOK {
		return l.end(ctx, x, ending{
			outcome: out.Outcome, by: self, text: failureText(out), input: out.Input, noTurn: e.Hop > 0,
		})
	}
	return l.handleReply(ctx, x, self, out)
}

// handleReply handles the final text of a turn on an open exchange.
func (l *links) handleReply(
	ctx context.Context, x *exchange, self string, out contract.AgentOutput,
) (sdk.Effects, error) {
	text := outputText(out)
	concludes := x.Mode == task && self == x.Peer
	if text != "" && concludes {
		waits, err := l.hasOpenExchanges(ctx, x, self)
		if err != nil {
			return nil, err
		}
		if !waits {
			return l.end(ctx, x, ending{outcome: concluded, by: self, text: text, input: out.Input})
		}
	}
	if text != "" && !concludes && x.Messages >= x.MaxMessages {
		return l.end(ctx, x, ending{outcome: capped, text: text, input: out.Input})
	}
	if text != "" && self == x.Peer && x.From.Thread == "" {
		switch exists, err := l.conversationExists(ctx, x.From.Session); {
		case err != nil:
			return nil, err
		case !exists:
			return l.end(ctx, x, ending{
				outcome: unavailable, text: "The conversation that asked was deleted.", input: out.Input,
			})
		}
	}
	x.removeUnanswered(out.Input)
	x.Active = l.now()
	var effects sdk.Effects
	switch {
	case text == "":
	case concludes: // not yet: it waits for another agent
		effects = append(effects, x.record(x.Initiator, self, text, x.ID))
	default:
		effects = l.sendMessage(x, self, text)
	}
	return append(effects, x.put()), nil
}

// lateOutput handles output on an exchange that has ended. The text of the turn that
// concluded is recorded on the other side; any other text is recorded on both sides
// as not delivered.
func (l *links) lateOutput(x *exchange, self string, out contract.AgentOutput) sdk.Effects {
	text := outputText(out)
	switch {
	case text == "" || out.Outcome != contract.OutcomeOK:
		return nil
	case out.Input == x.ConcludingInput && x.ConcludingInput != "":
		return sdk.Effects{x.record(x.other(self), self, text, x.ID)}
	}
	l.log.Warn("message not delivered: the exchange is over", "exchange", x.ID, "agent", self, "ended", x.Outcome)
	return sdk.Effects{
		x.record(self, ID, fmt.Sprintf("Error: your last text was not delivered, because the exchange %s is over: %s.",
			x.ID, x.outcomeText()), x.ID),
		x.record(x.other(self), self, fmt.Sprintf("Too late, after the exchange %s ended: %s", x.ID, text), x.ID),
	}
}

// sideDeleted ends the open exchanges of a side whose session was deleted at a time,
// and creates the session again if it is one of the start. Exchanges that were begun
// later have a new session.
func (l *links) sideDeleted(ctx context.Context, s side, at time.Time) error {
	if one := l.linkBetween(s.self, s.peer); one != nil && one.Problem == "" && s.within == "" {
		if err := l.open(ctx, one); err != nil {
			l.log.Warn("cannot create a deleted session again; the next exchange creates it",
				"session", sessionKey(s.self, s.peer, ""), "error", err)
		}
	}
	return l.endMatching(ctx, func(_ context.Context, x *exchange) (ending, error) {
		if x.other(s.self) != s.peer || x.Within != s.within || x.Opened.After(at) {
			return ending{}, nil
		}
		return ending{outcome: unavailable, text: fmt.Sprintf("The session of %s was deleted.", s.self)}, nil
	})
}

// outputText returns the text of an output; empty: there is no message.
func outputText(out contract.AgentOutput) string {
	if text := strings.TrimSpace(out.Text); text != noReply {
		return text
	}
	return ""
}

// failureText describes a failed turn.
func failureText(out contract.AgentOutput) string {
	text := strings.TrimSpace(out.Text)
	if out.Partial != "" {
		text += "\n\nOutput so far:\n\n" + out.Partial
	}
	return strings.TrimSpace(text)
}
