package tasks

import (
	"encoding/json"
	"math"
	"strings"
)

// finite is false for what JSON cannot hold.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// sayMessages is what was collected, for people.
func sayMessages(content string) string {
	var m messages
	if json.Unmarshal([]byte(content), &m) != nil {
		return content
	}
	var parts []string
	for _, message := range m.Messages {
		parts = append(parts, message.prose())
	}
	if m.Text != "" {
		parts = append(parts, m.Text)
	}
	if m.More {
		parts = append(parts, "There is more.")
	}
	return strings.Join(parts, "\n\n")
}
