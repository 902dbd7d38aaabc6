package agent

import (
	"fmt"
	"strings"
	"time"
)

// Plain is the shortest prompts that are of use.
type Plain struct{}

// System is the instructions, the channel and the time.
func (Plain) System(s Scene) (string, error) {
	var b strings.Builder
	if s.Instructions != "" {
		b.WriteString(strings.TrimSpace(s.Instructions))
	} else {
		fmt.Fprintf(&b, "You are %s, an assistant.", s.Name)
	}
	if s.Channel.ID != "" {
		fmt.Fprintf(&b, "\nCurrent channel: %s (%s)", s.Channel.ID, s.Channel.Name)
	}
	fmt.Fprintf(&b, "\nCurrent time: %s (%s)", s.Time(), s.Zone)
	return b.String(), nil
}

// Say names the reason and what to do.
func (Plain) Say(e Ending) (string, error) {
	switch e.Why {
	case WhyTimeout:
		return fmt.Sprintf("I stopped: this took longer than %s. What was done so far is kept; ask again to go on.", e.Limit.Round(time.Second)), nil
	case WhyCapped:
		return fmt.Sprintf("I stopped after %d steps without being done. Ask me to go on, or for less at once.", e.Steps), nil
	case WhyEmpty:
		return "The model gave an empty answer twice. Please try again, or put it differently.", nil
	default:
		return fmt.Sprintf("The model could not answer: %s", e.Detail), nil
	}
}
