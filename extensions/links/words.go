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
		return "ended without a conclusion: what it needs is not there any more"
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
	case concluded, unavailable:
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

// report is the result for the place that waits for it: the one where x was
// begun, or one further up.
func (x *exchange) report(asked bool) string {
	if asked {
		return fmt.Sprintf("The exchange %s that you began with %s is over: %s.%s", x.ID, x.Peer, x.ending(), x.last())
	}
	return fmt.Sprintf("The exchange %s between %s and %s, which followed from what you asked for, is over: %s.%s",
		x.ID, x.Initiator, x.Peer, x.ending(), x.last())
}
