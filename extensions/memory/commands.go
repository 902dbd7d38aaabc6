package memory

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
)

// sayRemembered formats the result of remember for people.
func sayRemembered(content, language string) string {
	var r remembered
	if json.Unmarshal([]byte(content), &r) != nil {
		return content
	}
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	text := oneLine(r.Text)
	var lines []string
	switch r.Status {
	case "updated":
		lines = append(lines, say("Updated: %s [%s]", text, r.ID))
	case "known":
		lines = append(lines, say("Already known: %s [%s]", text, r.ID))
	default:
		lines = append(lines, say("Remembered: %s [%s]", text, r.ID))
	}
	if len(r.Similar) > 0 {
		lines = append(lines, "", say("I also remember the following. If something is outdated, /forget it:"), "")
	}
	for _, s := range r.Similar {
		lines = append(lines, fmt.Sprintf("- %s (%s) [%s]", oneLine(s.Text), s.details(language), s.ID))
	}
	if len(r.Notes) > 0 {
		lines = append(lines, "")
	}
	for _, note := range r.Notes {
		lines = append(lines, words.Translate(language, note))
	}
	return strings.Join(lines, "\n")
}

// sayResult formats the result of forget or list_memories for people.
func sayResult[T interface{ text(language string) string }](content, language string) string {
	var result T
	if json.Unmarshal([]byte(content), &result) != nil {
		return content
	}
	return result.text(language)
}
