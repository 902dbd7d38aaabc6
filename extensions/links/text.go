package links

import (
	"fmt"
	"strings"
)

// outcomeText describes the outcome of an exchange.
func (x *exchange) outcomeText() string {
	switch x.Outcome {
	case concluded:
		return "concluded by " + x.EndedBy
	case capped:
		if x.Messages >= x.MaxMessages {
			return fmt.Sprintf("ended without a conclusion: its %d messages are used up", x.MaxMessages)
		}
		return "ended without a conclusion: too many turns followed from one event"
	case idle:
		return "ended without a conclusion: no message arrived for too long"
	case unavailable:
		return "ended without a conclusion: the link, an agent or a session is no longer available"
	case "timeout":
		return fmt.Sprintf("ended without a conclusion: %s took too long", x.EndedBy)
	case "cancelled":
		if x.EndedBy == "" {
			return "ended without a conclusion: the user stopped everything"
		}
		return fmt.Sprintf("ended without a conclusion: %s was stopped", x.EndedBy)
	}
	return fmt.Sprintf("ended without a conclusion: %s failed (%s)", x.EndedBy, x.Outcome)
}

// summaryText returns the summary with an introduction.
func (x *exchange) summaryText() string {
	if strings.TrimSpace(x.Summary) == "" {
		return ""
	}
	switch x.Outcome {
	case concluded, unavailable:
		return "\n\n" + x.Summary
	case capped:
		return "\n\nThe last message, which was not delivered:\n\n" + x.Summary
	}
	return "\n\nDetails:\n\n" + x.Summary
}

// endRecord is the record of the end on an agent's side. It belongs to no thread, so
// that later exchanges show it.
func (x *exchange) endRecord(agent string) string {
	return fmt.Sprintf("The exchange %s with %s is over: %s.%s", x.ID, x.other(agent), x.outcomeText(), x.summaryText())
}

// report is the text of the result, for the origin of x or for an ancestor.
func (x *exchange) report(origin bool) string {
	if origin {
		return fmt.Sprintf("The exchange %s that you began with %s is over: %s.%s", x.ID, x.Peer, x.outcomeText(),
			x.summaryText())
	}
	return fmt.Sprintf("The exchange %s between %s and %s, which your request led to, is over: %s.%s",
		x.ID, x.Initiator, x.Peer, x.outcomeText(), x.summaryText())
}
