package links

import (
	"fmt"
	"strings"
)

// ending says in a few words how an exchange ended.
func (x *exchange) ending() string {
	switch x.Outcome {
	case concluded:
		return "concluded by " + x.EndedBy
	case cappedEnd:
		if x.Messages >= x.MaxMessages {
			return fmt.Sprintf("ended without a conclusion: its %d messages are used up", x.MaxMessages)
		}
		return "ended without a conclusion: too many turns followed from one event"
	case idleEnd:
		return "ended without a conclusion: nothing was said for too long"
	case unavailable:
		return "ended without a conclusion: the link is not in force any more"
	case "timeout":
		return fmt.Sprintf("ended without a conclusion: %s took too long", x.EndedBy)
	case "cancelled":
		return fmt.Sprintf("ended without a conclusion: %s was stopped", x.EndedBy)
	}
	return fmt.Sprintf("ended without a conclusion: %s failed (%s)", x.EndedBy, x.Outcome)
}

// last says what the text of an end is.
func (x *exchange) last() string {
	if strings.TrimSpace(x.Summary) == "" {
		return ""
	}
	switch x.Outcome {
	case concluded:
		return "\n\n" + x.Summary
	case cappedEnd:
		return "\n\nThe last message, which was not delivered:\n\n" + x.Summary
	}
	return "\n\nWhat was said last:\n\n" + x.Summary
}

// epitaph is the record on the side of an agent. It belongs to no exchange, so
// that later ones know of it.
func (x *exchange) epitaph(agent string) string {
	return fmt.Sprintf("The exchange %s with %s is over: %s.%s", x.ID, x.other(agent), x.ending(), x.last())
}

// report is the result for the place that waits for it.
func (x *exchange) report(to origin) string {
	if to == x.From {
		return fmt.Sprintf("The exchange %s that you began with %s is over: %s.%s", x.ID, x.Peer, x.ending(), x.last())
	}
	return fmt.Sprintf("The exchange %s between %s and %s, which followed from what you asked for, is over: %s.%s",
		x.ID, x.Initiator, x.Peer, x.ending(), x.last())
}

// unanswered is a result that nobody will answer.
func (o owed) unanswered() string {
	return fmt.Sprintf("%s had received this from %s:\n\n%s", o.Agent, o.From, o.Text)
}

// late is what a place is told of a result that came when the exchange for which
// it was had ended, and of what the agent said of it.
func (x *exchange) late(o owed, comment string) string {
	text := fmt.Sprintf("After its exchange %s was over, %s received this from %s:\n\n%s", x.ID, o.Agent, o.From, o.Text)
	if comment != "" {
		text += fmt.Sprintf("\n\n%s says of it:\n\n%s", o.Agent, comment)
	}
	return text
}
