package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
)

// parseMemories parses the text after /memories: empty, a kind, or words to search.
func parseMemories(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	switch kind := item.Kind(strings.ToLower(text)); {
	case text == "":
		return json.RawMessage(`{}`), nil
	case slices.Contains(item.Kinds, kind):
		return json.Marshal(map[string]any{"kind": kind})
	}
	return json.Marshal(map[string]any{"about": text})
}

// parseRemember parses the text after /remember.
func parseRemember(text string) (json.RawMessage, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, errors.New("usage: /remember TEXT, for example: /remember The kettle is in the kitchen")
	}
	return json.Marshal(map[string]any{"text": text})
}

// parseForget parses the ids after /forget.
func parseForget(text string) (json.RawMessage, error) {
	ids := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;\n\t", r) })
	if len(ids) == 0 {
		return nil, errors.New("usage: /forget ID, for example: /forget m4k2q7. To see the ids: /memories")
	}
	return json.Marshal(map[string]any{"ids": ids})
}

// sayRemembered formats the result of remember for people.
func sayRemembered(content string) string {
	var r remembered
	if json.Unmarshal([]byte(content), &r) != nil {
		return content
	}
	done := map[string]string{"remembered": "Remembered", "updated": "Updated", "known": "Already known"}[r.Status]
	lines := []string{fmt.Sprintf("%s: %s [%s]", done, oneLine(r.Text), r.ID)}
	if len(r.Similar) > 0 {
		lines = append(lines, "", "I also remember the following. If something is outdated, /forget it:", "")
	}
	for _, s := range r.Similar {
		lines = append(lines, fmt.Sprintf("- %s (%s) [%s]", oneLine(s.Text), s.details(), s.ID))
	}
	if len(r.Notes) > 0 {
		lines = append(append(lines, ""), r.Notes...)
	}
	return strings.Join(lines, "\n")
}
