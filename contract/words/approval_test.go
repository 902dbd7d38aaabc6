package words_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract/words"
)

func TestApprovalInPeoplesWords(t *testing.T) {
	t.Parallel()
	const yes, no = words.Yes, words.No
	for text, want := range map[string]string{
		"yes": yes, " Yes! ": yes, "yes please": yes, "Yes, thank you.": yes, "ok": yes, "OK, go ahead": yes, "sure": yes,
		"of course": yes, "yes yes": yes, "да": yes, "Да, конечно!": yes, "давай, пожалуйста": yes,
		"no": no, "No, thanks": no, "nope": no, "нет, спасибо": no, "не надо": no, "Нет, не надо": no,
		"": "", "thanks": "", "please": "", "пожалуйста": "", "да нет": "", "yes or no?": "", "ok no": "", "of": "", "go": "",
		"not ok": "", "yes but only the first": "", "no problem": "", "of course not": "", "не давай": "", "не": "",
		"да, но позже": "", "okay then what": "", "👍": "", "yesno": "", "n0": "",
	} {
		if got, ok := words.Approval(text); got != want || ok != (want != "") {
			t.Errorf("%q is the answer %q, %t; want %q", text, got, ok, want)
		}
	}
}
