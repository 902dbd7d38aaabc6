package heartbeat

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Every answer is either refused or one of the three actions with a reason of one
// line and bounded length.
func FuzzDecision(f *testing.F) {
	for _, seed := range []string{
		`{"action":"noop"}`,
		"```json\n{\"action\":\"escalate\",\"reason\":\"the rent is due\",\"items\":[\"i1\"]}\n```",
		"```", "``````", `{"action":"escalate","reason":"` + strings.Repeat("a\n", 3000) + `"}`, `{"action":"done"}{}`,
		`[]`, `null`, "",
		`{"action":"escalate","reason":"\u0000\u2028"}`, `{"action":"escalate","reason":" ","items":null}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDecision(text)
		if err != nil {
			return
		}
		if !slices.Contains([]string{actionNoop, actionDone, actionEscalate}, d.Action) {
			t.Errorf("the action %q is accepted", d.Action)
		}
		if utf8.RuneCountInString(d.Reason) > maxReason+1 || strings.ContainsAny(d.Reason, "\n\r") ||
			!utf8.ValidString(d.Reason) {
			t.Errorf("the reason %q is accepted", d.Reason)
		}
		d.itemsOf([]item{{ID: "i1"}, {ID: ""}})
	})
}
