package ask_test

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/ask"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	colors := ask.Question{Kind: contract.AskChoose, Options: []string{"Red", "Blue"}}
	for _, c := range []struct {
		q          ask.Question
		text, want string
	}{
		{ask.Question{Kind: contract.AskApprove}, "yes please", "yes"},
		{ask.Question{Kind: contract.AskApprove}, "perhaps", ""},
		{colors, "2", "Blue"},
		{colors, "1.", "Red"},
		{colors, " red! ", "Red"},
		{colors, "3", ""},
		{colors, "0", ""},
		{ask.Question{Kind: contract.AskAnswer}, " at noon ", "at noon"},
		{ask.Question{Kind: contract.AskAnswer}, " ", ""},
	} {
		if got, ok := c.q.ParseAnswer(c.text); got != c.want || ok != (c.want != "") {
			t.Errorf("%q answers %+v with %q, %t; want %q", c.text, c.q, got, ok, c.want)
		}
	}
}

func TestAQuestionInBrief(t *testing.T) {
	t.Parallel()
	q := ask.Question{ID: "q7", Text: "Which color:\nthe car's", Options: []string{"red", "blue"}}
	if got := q.Summary(); got != "Which color ...\n  1. red\n  2. blue" {
		t.Errorf("in brief: %q", got)
	}
	q.Text = strings.Repeat("ж", 101)
	if got := q.Brief(); got != strings.Repeat("ж", 100)+" ..." {
		t.Errorf("a long line in brief: %q", got)
	}
}
