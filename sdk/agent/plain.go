package agent

import (
	"fmt"
	"strings"
	"time"
)

// Plain is the shortest prompts that are of use.
type Plain struct{}

// System is the instructions.
func (Plain) System(s Scene) (string, error) {
	if s.Instructions != "" {
		return strings.TrimSpace(s.Instructions), nil
	}
	return fmt.Sprintf("You are %s, an assistant.", s.Name), nil
}

// Told is the time and the channel.
func (Plain) Told(s Scene) (string, error) {
	told := "Current time: " + s.Clock()
	if s.Channel.ID != "" {
		told += fmt.Sprintf("\nCurrent channel: %s (%s)", s.Channel.ID, s.Channel.Name)
	}
	return told, nil
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
