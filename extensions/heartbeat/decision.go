package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// What the scout may want.
const (
	actionNoop     = "noop"
	actionDone     = "done"
	actionEscalate = "escalate"
)

// decision is the scout's answer.
type decision struct {
	Action string   `json:"action"`
	Reason string   `json:"reason"`
	Items  []string `json:"items"`
}

// maxReason is the most characters of a reason.
const maxReason = 1000

// parseDecision reads an answer: one JSON object, which may stand in a code
// fence, and nothing else.
func parseDecision(text string) (decision, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if inner, ok = strings.CutSuffix(inner, "```"); !ok {
			return decision{}, errors.New("a code fence that does not end")
		}
		text = strings.TrimPrefix(strings.TrimSpace(inner), "json")
	}
	var d decision
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&d); err != nil {
		return decision{}, fmt.Errorf("not the JSON that was asked for: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return decision{}, errors.New("more than one JSON object")
	}
	d.Reason = oneLine(d.Reason)
	switch {
	case !slices.Contains([]string{actionNoop, actionDone, actionEscalate}, d.Action):
		return decision{}, fmt.Errorf("an unknown action %q", d.Action)
	case d.Action == actionEscalate && normalized(d.Reason) == "":
		return decision{}, errors.New("an escalation without a reason")
	}
	return d, nil
}

// oneLine keeps a reason from looking like anything but a reason.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason]) + "…"
	}
	return text
}

// concerns are the items that a decision is about. One that names none is about
// all it was shown.
func (d decision) concerns(shown []item) (items []item, named bool) {
	for _, i := range shown {
		if slices.ContainsFunc(d.Items, func(id string) bool { return strings.Trim(strings.TrimSpace(id), "[]#") == i.ID }) {
			items = append(items, i)
		}
	}
	if len(items) > 0 {
		return items, true
	}
	return shown, false
}
