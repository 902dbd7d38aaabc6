package tasks

import (
	"encoding/json"
	"strings"

	"github.com/switchboard-run/switchboard/contract/words"
)

// formatMessages formats the result of receive or check for people.
func formatMessages(content, language string) string {
	var m messages
	if json.Unmarshal([]byte(content), &m) != nil {
		return content
	}
	var parts []string
	for _, message := range m.Messages {
		parts = append(parts, message.markdown(language))
	}
	if m.Text != "" {
		parts = append(parts, words.Translate(language, m.Text))
	}
	if m.More {
		parts = append(parts, words.Say(language, "There are more messages. /check shows them."))
	}
	return strings.Join(parts, "\n\n")
}

// formatList formats the result of queue or inbox for people.
func formatList[T interface{ format(language string) string }](content, language string) string {
	var list T
	if json.Unmarshal([]byte(content), &list) != nil {
		return content
	}
	return list.format(language)
}

// formatText formats a result whose text is one sentence for people.
func formatText(content, language string) string {
	var result struct{ Text string }
	if json.Unmarshal([]byte(content), &result) != nil {
		return content
	}
	return words.Translate(language, result.Text)
}
