package links

import (
	"context"
	"fmt"
	"strings"

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
	s := l.sides[out.Session]
	if s == nil || out.Thread == "" { // somebody else's, or said on the side outside of an exchange
		return nil, nil
	}
	x, err := l.load(ctx, out.Thread)
	switch {
	case err != nil:
		return nil, err
	case x == nil:
		l.log.Warn("something was said on an exchange that is not known any more", "exchange", out.Thread, "session", out.Session)
		return nil, nil
	}
	text := strings.TrimSpace(out.Text)
	if text == silence {
		text = ""
	}
	x.Spoken[s.self]++
	turn := x.Spoken[s.self]
	about, owes := x.answered(s.self, turn)
	if x.Over {
		return l.afterwards(ctx, x, s, out.Outcome, text, turn, about, owes)
	}
	if out.Outcome != contract.OutcomeOK {
		x.Spoken[s.self]-- // finish takes this turn for the one that ends it
		said := out.Text
		if owes { // nobody else will pass it on
			said = strings.TrimSpace(said + "\n\n" + about.unanswered())
		}
		effects, err := l.finish(ctx, x, out.Outcome, s.self, said)
		x.Spoken[s.self]++
		return rewritten(x, effects), err
	}
	if text == "" {
		x.Active = l.now()
		return sdk.Effects{x.put()}, nil
	}
	if x.Mode == task && s.self == x.Peer {
		waits, err := l.children(ctx, x, s.session)
		if err != nil {
			return nil, err
		}
		if !waits {
			x.Spoken[s.self]--
			effects, err := l.finish(ctx, x, concluded, s.self, text)
			x.Spoken[s.self]++
			return rewritten(x, effects), err
		}
		x.Active = l.now()
		return sdk.Effects{x.record(x.Initiator, s.self, text, x.ID), x.put()}, nil
	}
	if x.Messages >= x.MaxMessages {
		effects, err := l.finish(ctx, x, cappedEnd, "", text)
		return effects, err
	}
	effects := l.message(x, s.self, text)
	return append(effects, x.put()), nil
}

// rewritten is the effects with the exchange as it is now: the last one.
func rewritten(x *exchange, effects sdk.Effects) sdk.Effects {
	if len(effects) > 0 {
		effects[len(effects)-1] = x.put()
	}
	return effects
}

// afterwards is what becomes of something that is said on an exchange that is
// over. The turn that concluded may have a text, which the other side takes note
// of; a result that had come before the end is passed on; all else is too late,
// and both sides read that.
func (l *links) afterwards(ctx context.Context, x *exchange, s *side, outcome, text string, turn int, about owed, owes bool) (sdk.Effects, error) {
	concluding := s.self == x.EndedBy && turn == x.Last
	if outcome != contract.OutcomeOK {
		text = ""
	}
	var effects sdk.Effects
	switch {
	case concluding && text != "":
		effects = append(effects, x.record(s.peer, s.self, text, x.ID))
	case concluding:
	case owes:
		to, parent, err := l.waiting(ctx, x.From)
		if err != nil {
			return nil, err
		}
		effects = append(effects, l.result(x, to, parent, s.self, x.late(about, text), fmt.Sprintf("late/%s/%d", s.self, turn))...)
	case text != "":
		l.log.Warn("something was said too late and is not delivered", "exchange", x.ID, "agent", s.self, "ended", x.Outcome)
		effects = append(effects,
			x.record(s.self, ID, fmt.Sprintf("Error: your last text was not delivered, because the exchange %s is over: %s.", x.ID, x.ending()), x.ID),
			x.record(s.peer, s.self, fmt.Sprintf("Too late, after the exchange %s was over: %s", x.ID, text), x.ID))
	}
	return append(effects, x.put()), nil
}
