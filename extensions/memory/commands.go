package memory

import (
	"encoding/json"
	"fmt"
	"strings"
)

// sayRemembered formats the result of remember for people.
func sayRemembered(content, _ string) string {
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
