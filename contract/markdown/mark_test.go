package markdown

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// roomBesideMark leaves room for the English mark.
func TestMarkOfEachLanguageFits(t *testing.T) {
	t.Parallel()
	english := strings.TrimSpace(contract.RepeatMark)
	for _, language := range words.Languages() {
		if mark := words.Say(language, english); Len(mark) > Len(english) {
			t.Errorf("in %s the mark %q is longer than %q", language, mark, english)
		}
	}
}
