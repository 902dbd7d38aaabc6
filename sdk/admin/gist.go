package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// outcome is how a task or an exchange ended, as results of tools hold it.
type outcome struct {
	From, Outcome, Output, Error, Message string
}

func (o outcome) words() string {
	switch {
	case o.Outcome == "" && o.Message != "":
		return fmt.Sprintf("%s writes: %s", o.From, o.Message)
	case o.Outcome == "ok":
		return fmt.Sprintf("%s has finished: %s", o.From, o.Output)
	}
	return fmt.Sprintf("%s has failed (%s): %s", o.From, o.Outcome, o.Error)
}

// Gist returns the words of a text that is meant for models: of an object with a text
// for people that text, of results and messages of agents their words. Any other text
// is returned unchanged.
func Gist(text string) string {
	if !strings.HasPrefix(text, "{") {
		return text
	}
	var said struct {
		outcome
		Text     string
		Messages []outcome
	}
	if json.Unmarshal([]byte(text), &said) != nil {
		return text
	}
	var parts []string
	if said.From != "" && said.Outcome != "" {
		parts = append(parts, said.words())
	}
	for _, m := range said.Messages {
		if m.From != "" && m.Outcome+m.Message != "" {
			parts = append(parts, m.words())
		}
	}
	if said.Text != "" {
		parts = append(parts, said.Text)
	}
	return cmp.Or(strings.Join(parts, "; "), text)
}
