package contract_test

import (
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestTruncateCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"añb", 2, "a…"}, {"añb", 3, "añ…"},
	} {
		if got := contract.Truncate(tt.text, tt.limit, "…"); got != tt.want {
			t.Errorf("Truncate(%q, %d) = %q, want %q", tt.text, tt.limit, got, tt.want)
		}
	}
}
