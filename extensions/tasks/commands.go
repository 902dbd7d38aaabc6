package tasks

import (
	"encoding/json"
	"strings"
)

// formatMessages formats the result of receive or check for people.
func formatMessages(content, _ string) string {
	var m messages
	if json.Unmarshal([]byte(content), &m) != nil {
		return content
	}
	var parts []string
	for _, message := range m.Messages {
		parts = append(parts, message.markdown())
	}
	if m.Text != "" {
		parts = append(parts, m.Text)
	}
	if m.More {
		parts = append(parts, "There are more messages. /check shows them.")
	}
	return strings.Join(parts, "\n\n")
}
