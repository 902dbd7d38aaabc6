package contract_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestBlank(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " \n\t", "\u200b", "\u200d\u2060\ufeff", "\u00a0\u3000", "\u2800", "\u3164", "\ufe0f", "\u202e", "\x00",
	} {
		if !contract.Blank(text) {
			t.Errorf("%q is said to show something", text)
		}
	}
	for _, text := range []string{"a", "7", ".", "é", "👍🏽", "❤️", "क्", "한", "\u200bx", "—", "€", "\ue000"} {
		if contract.Blank(text) {
			t.Errorf("%q is said to be blank", text)
		}
	}
}
