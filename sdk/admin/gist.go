package admin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// outcome is what became of a piece of work, as results hold it.
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

// Gist is what a text says that is meant for models: of an object with a text
// for people that text, of results and messages of agents what they say. Any
// other text is its own gist.
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
