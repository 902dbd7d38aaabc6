package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/extensions/memory/item"
)

// parseMemories reads what stands behind /memories: nothing, a kind, or words to
// look for.
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

// parseRemember reads what stands behind /remember: the text.
func parseRemember(text string) (json.RawMessage, error) {
	if text = strings.TrimSpace(text); text == "" {
		return nil, errors.New("write what to remember behind it: /remember The kettle is in the kitchen")
	}
	return json.Marshal(map[string]any{"text": text})
}

// parseForget reads what stands behind /forget: ids.
func parseForget(text string) (json.RawMessage, error) {
	ids := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;\n\t", r) })
	if len(ids) == 0 {
		return nil, errors.New("write the ids behind it, /memories shows them: /forget m4k2q7")
	}
	return json.Marshal(map[string]any{"ids": ids})
}

// sayRemembered is the result of remember for people.
func sayRemembered(content string) string {
	var r remembered
	if json.Unmarshal([]byte(content), &r) != nil {
		return content
	}
	done := map[string]string{"remembered": "Remembered", "updated": "Updated", "known": "Known already"}[r.Status]
	lines := []string{fmt.Sprintf("%s: %s [%s]", done, oneLine(r.Text), r.ID)}
	if len(r.Similar) > 0 {
		lines = append(lines, "", "This is similar; /forget what no longer holds:", "")
	}
	for _, s := range r.Similar {
		lines = append(lines, fmt.Sprintf("- %s (%s) [%s]", oneLine(s.Text), s.about(), s.ID))
	}
	if len(r.Notes) > 0 {
		lines = append(append(lines, ""), r.Notes...)
	}
	return strings.Join(lines, "\n")
}
