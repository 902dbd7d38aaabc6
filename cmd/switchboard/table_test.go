package main

import (
	"strings"
	"testing"
	"time"
)

func TestTables(t *testing.T) {
	t.Parallel()
	const long = "no token: make a bot and set it in /home/anna/.local/secrets.env"
	for name, tt := range map[string]struct {
		width  int
		header string
		rows   [][]cell
		want   string
	}{
		"columns stand under their titles": {0, "ID AGENT DETAIL",
			[][]cell{{text("cli_channel"), text("orchestrator"), text("")},
				{text("чайник"), text("漢字"), text("no token")}},
			"ID           AGENT         DETAIL\ncli_channel  orchestrator\nчайник       漢字          no token\n"},
		"as it is where there is no terminal": {0, "ID DETAIL", [][]cell{{text("x"), text(long)}},
			"ID  DETAIL\nx   " + long + "\n"},
		"the last column is broken into lines": {42, "ID DETAIL", [][]cell{{text("x"), text(long)}, {text("y"), text("z")}},
			"ID  DETAIL\nx   no token: make a bot and set it in\n    /home/anna/.local/secrets.env\ny   z\n"},
		"or cut, if it is narrow": {20, "ID DETAIL", [][]cell{{text("x"), text(long)}},
			"ID  DETAIL\nx   no token: make …\n"},
		"another is cut": {30, "ID WHAT SINCE", [][]cell{{text("x"), text(long), text("15:04:05")}},
			"ID  WHAT              SINCE\nx   no token: make …  15:04:05\n"},
		"the first is whole": {20, "ID WHAT", [][]cell{{text("orchestrator (default)"), text(long)}},
			"ID                      WHAT\norchestrator (default)  no toke…\n"},
		"nothing": {20, "ID DETAIL", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			p := &printer{w: &b, zone: time.UTC, width: tt.width}
			p.table(tt.header, tt.rows)
			if b.String() != tt.want {
				t.Errorf("got:\n%swant:\n%s", b.String(), tt.want)
			}
		})
	}
}
