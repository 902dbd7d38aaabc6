package questions

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestApprovalInPeoplesWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"yes": Yes, " Yes! ": Yes, "yes please": Yes, "Yes, thank you.": Yes, "ok": Yes, "OK, go ahead": Yes, "sure": Yes,
		"of course": Yes, "yes yes": Yes, "да": Yes, "Да, конечно!": Yes, "давай, пожалуйста": Yes,
		"no": No, "No, thanks": No, "nope": No, "нет, спасибо": No, "не надо": No, "Нет, не надо": No,
		"": "", "thanks": "", "please": "", "пожалуйста": "", "да нет": "", "yes or no?": "", "ok no": "", "of": "", "go": "",
		"not ok": "", "yes but only the first": "", "no problem": "", "of course not": "", "не давай": "", "не": "",
		"да, но позже": "", "okay then what": "", "👍": "", "yesno": "", "n0": "",
	} {
		q := Question{Kind: contract.AskApprove}
		if got, ok := q.ParseAnswer(text); got != want || ok != (want != "") {
			t.Errorf("%q is the answer %q, %t; want %q", text, got, ok, want)
		}
	}
}
