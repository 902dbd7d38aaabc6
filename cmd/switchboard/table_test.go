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
		"or stands below, if it would be narrow": {20, "ID DETAIL", [][]cell{{text("x"), text(long)}, {text("y"), text("")}},
			"ID\nx\n    no token: make a\n    bot and set it\n    in\n    /home/anna/.loca\n    l/secrets.env\ny\n"},
		"columns are omitted in their order": {36, "ID KIND NEXT WHAT | KIND NEXT",
			[][]cell{{text("r1"), text("reminder"), text("2026-11-23"), text("take the pills")}},
			"ID  NEXT        WHAT\nr1  2026-11-23  take the pills\n"},
		"as many as it takes": {24, "ID KIND NEXT WHAT | KIND NEXT",
			[][]cell{{text("r1"), text("reminder"), text("2026-11-23"), text("take the pills")}},
			"ID  WHAT\nr1  take the pills\n"},
		"none where there is no terminal": {0, "ID KIND WHAT | KIND", [][]cell{{text("r1"), text("reminder"), text("pills")}},
			"ID  KIND      WHAT\nr1  reminder  pills\n"},
		"another is cut": {30, "ID WHAT SINCE", [][]cell{{text("x"), text(long), text("15:04:05")}},
			"ID  WHAT              SINCE\nx   no token: make …  15:04:05\n"},
		"the first is whole": {20, "ID WHAT", [][]cell{{text("orchestrator (default)"), text(long)}},
			"ID\norchestrator (default)\n    no token: make a\n    bot and set it\n    in\n    /home/anna/.loca\n    l/secrets.env\n"},
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
