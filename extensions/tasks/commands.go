package tasks

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
)

// isFinite reports whether JSON can hold a number.
func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// parseRunArgs parses the arguments of /run: a count and a timeout, at most once each.
func parseRunArgs(text string) (json.RawMessage, error) {
	fields := map[string]any{}
	for word := range strings.FieldsSeq(text) {
		key, value, named := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if !named {
			key, value = "count", word
		}
		n, err := strconv.ParseFloat(value, 64)
		_, twice := fields[key]
		if err != nil || !isFinite(n) || twice || key != "timeout" && (key != "count" || n != float64(int(n))) {
			return nil, errors.New("usage: /run [N] [timeout=SECONDS]")
		}
		fields[key] = n
	}
	return json.Marshal(fields)
}

// parseAllArg parses the argument of /queue and /inbox: nothing, or all.
func parseAllArg(text string) (json.RawMessage, error) {
	switch strings.TrimLeft(strings.TrimSpace(text), "-") {
	case "":
		return json.RawMessage(`{}`), nil
	case "all":
		return json.RawMessage(`{"all": true}`), nil
	}
	return nil, errors.New("the only argument is all, which includes other conversations")
}

// parseSendArgs parses the arguments of /send: a name and a text.
func parseSendArgs(text string) (json.RawMessage, error) {
	to, message, _ := strings.Cut(strings.TrimSpace(text), " ")
	if message = strings.TrimSpace(message); message == "" {
		return nil, errors.New("usage: /send NAME TEXT")
	}
	return json.Marshal(map[string]string{"to": to, "message": message})
}

// formatMessages formats the result of receive or check for people.
func formatMessages(content string) string {
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
