package links

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// silence is what an agent answers that has nothing to say.
const silence = "NO_REPLY"

// handle takes what was said on a side of a link to the other one.
func (l *links) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	if e.Topic != contract.TopicAgentOutput {
		return nil, sdk.Drop("links handle " + contract.TopicAgentOutput + " alone")
	}
	var out contract.AgentOutput
	if err := e.Decode(&out); err != nil {
		return nil, err
	}
	at, ours := sideOf(out.Key)
	self := at.self
	if !ours {
		return nil, nil
	}
	if out.Outcome == contract.OutcomeCancelled {
		switch there, err := l.there(ctx, out.Session); {
		case err != nil:
			return nil, err
		case !there:
			return nil, l.deleted(ctx, at, e.CreatedAt)
		}
	}
	if out.Thread == "" { // said on the side outside of an exchange
		return nil, nil
	}
	x, err := l.load(ctx, out.Thread)
	switch {
	case err != nil:
		return nil, err
	case x == nil || x.other(self) == "":
		l.log.Warn("something was said on an exchange that is not known any more", "exchange", out.Thread, "session", out.Session)
		return nil, nil
	case x.Over:
		return l.late(x, self, out), nil
	}
	x.spokeIn(self, out.Session)
	if out.Outcome != contract.OutcomeOK {
		return l.end(ctx, x, ending{outcome: out.Outcome, by: self, text: failure(out), input: out.Input, spent: e.Hop > 0})
	}
	return l.replied(ctx, x, self, out)
}

// replied is the final text of a turn on an open exchange.
func (l *links) replied(ctx context.Context, x *exchange, self string, out contract.AgentOutput) (sdk.Effects, error) {
	text := spoken(out)
	concludes := x.Mode == task && self == x.Peer
	if text != "" && concludes {
		waits, err := l.waits(ctx, x, self)
		if err != nil {
			return nil, err
		}
		if !waits {
			return l.end(ctx, x, ending{outcome: concluded, by: self, text: text, input: out.Input})
		}
	}
	if text != "" && !concludes && x.Messages >= x.MaxMessages {
		return l.end(ctx, x, ending{outcome: cappedEnd, text: text, input: out.Input})
	}
	if text != "" && self == x.Peer && x.From.Thread == "" {
		switch listens, err := l.listens(ctx, x.From.Session); {
		case err != nil:
			return nil, err
		case !listens:
			return l.end(ctx, x, ending{outcome: unavailable, text: "The conversation that had asked for it was deleted.", input: out.Input})
		}
	}
	x.answered(out.Input)
	x.Active = l.now()
	var effects sdk.Effects
	switch {
	case text == "":
	case concludes: // not yet: it waits for another agent itself
		effects = append(effects, x.record(x.Initiator, self, text, x.ID))
	default:
		effects = l.message(x, self, text)
	}
	return append(effects, x.put()), nil
}

// late is what becomes of something that is said on an exchange that is over. The
// turn that concluded may have a text, which the other side takes note of; all
// else is too late, and both sides read that.
func (l *links) late(x *exchange, self string, out contract.AgentOutput) sdk.Effects {
	text := spoken(out)
	switch {
	case text == "" || out.Outcome != contract.OutcomeOK:
		return nil
	case out.Input == x.Last && x.Last != "":
		return sdk.Effects{x.record(x.other(self), self, text, x.ID)}
	}
	l.log.Warn("something was said too late and is not delivered", "exchange", x.ID, "agent", self, "ended", x.Outcome)
	return sdk.Effects{
		x.record(self, ID, fmt.Sprintf("Error: your last text was not delivered, because the exchange %s is over: %s.", x.ID, x.ending()), x.ID),
		x.record(x.other(self), self, fmt.Sprintf("Too late, after the exchange %s was over: %s", x.ID, text), x.ID),
	}
}

// deleted ends what was open on a side whose session was deleted, and makes a
// session anew that is there from the start. What was begun later is not concerned: it had made one.
func (l *links) deleted(ctx context.Context, s side, at time.Time) error {
	if one := l.between(s.self, s.peer); one != nil && one.Problem == "" && s.within == "" {
		if err := l.open(ctx, one); err != nil {
			l.log.Warn("a session that was deleted is made again when it is needed", "session", sessionKey(s.self, s.peer, ""), "error", err)
		}
	}
	return l.endThose(ctx, func(_ context.Context, x *exchange) (ending, error) {
		if x.other(s.self) != s.peer || x.Within != s.within || x.Opened.After(at) {
			return ending{}, nil
		}
		return ending{outcome: unavailable, text: fmt.Sprintf("The side of %s was deleted.", s.self)}, nil
	})
}

// spoken is what an agent said, if it said anything.
func spoken(out contract.AgentOutput) string {
	if text := strings.TrimSpace(out.Text); text != silence {
		return text
	}
	return ""
}

// failure is what there is to say of a turn that did not end well.
func failure(out contract.AgentOutput) string {
	text := strings.TrimSpace(out.Text)
	if out.Partial != "" {
		text += "\n\nBefore that it had said:\n\n" + out.Partial
	}
	return strings.TrimSpace(text)
}
