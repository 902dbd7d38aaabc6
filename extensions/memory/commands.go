package memory

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
