package tasks

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// finite is false for what JSON cannot hold.
func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// parseRun reads what stands behind /run: a number, and a timeout, each once.
func parseRun(text string) (json.RawMessage, error) {
	fields := map[string]any{}
	for word := range strings.FieldsSeq(text) {
		key, value, named := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if !named {
			key, value = "count", word
		}
		n, err := strconv.ParseFloat(value, 64)
		_, twice := fields[key]
		if err != nil || !finite(n) || twice || key != "timeout" && (key != "count" || n != float64(int(n))) {
			return nil, errors.New("write how many at a time behind it, or nothing: /run [N] [timeout=SECONDS]")
		}
		fields[key] = n
	}
	return json.Marshal(fields)
}

// parseAll reads what stands behind /queue and /inbox: nothing, or all.
func parseAll(text string) (json.RawMessage, error) {
	switch strings.TrimLeft(strings.TrimSpace(text), "-") {
	case "":
		return json.RawMessage(`{}`), nil
	case "all":
		return json.RawMessage(`{"all": true}`), nil
	}
	return nil, errors.New("write nothing behind it, or all for those of other conversations")
}

// parseSend reads what stands behind /send: a name and a text.
func parseSend(text string) (json.RawMessage, error) {
	to, message, _ := strings.Cut(strings.TrimSpace(text), " ")
	if message = strings.TrimSpace(message); message == "" {
		return nil, errors.New("write to whom and what behind it: /send NAME TEXT")
	}
	return json.Marshal(map[string]string{"to": to, "message": message})
}

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
