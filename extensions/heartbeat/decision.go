package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The scout's actions.
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

// parseDecision parses an answer: exactly one JSON object, also in a code fence.
func parseDecision(text string) (decision, error) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if inner, ok = strings.CutSuffix(inner, "```"); !ok {
			return decision{}, errors.New("parse decision: code fence is not closed")
		}
		text = strings.TrimPrefix(strings.TrimSpace(inner), "json")
	}
	var d decision
	decoder := json.NewDecoder(strings.NewReader(text))
	if err := decoder.Decode(&d); err != nil {
		return decision{}, fmt.Errorf("parse decision: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return decision{}, errors.New("parse decision: more than one JSON object")
	}
	d.Reason = oneLine(d.Reason)
	switch {
	case !slices.Contains([]string{actionNoop, actionDone, actionEscalate}, d.Action):
		return decision{}, fmt.Errorf("parse decision: unknown action %q", d.Action)
	case d.Action == actionEscalate && normalized(d.Reason) == "":
		return decision{}, errors.New("parse decision: escalation without a reason")
	}
	return d, nil
}

// oneLine returns a text on one line, cut to maxReason, so that it can't imitate
// other parts of a prompt.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > maxReason {
		text = string(r[:maxReason]) + "…"
	}
	return text
}

// itemsOf returns the shown items that a decision names, or all if it names none.
func (d decision) itemsOf(shown []item) (items []item, named bool) {
	for _, i := range shown {
		isID := func(id string) bool { return strings.Trim(strings.TrimSpace(id), "[]#") == i.ID }
		if slices.ContainsFunc(d.Items, isID) {
			items = append(items, i)
		}
	}
	if len(items) > 0 {
		return items, true
	}
	return shown, false
}
