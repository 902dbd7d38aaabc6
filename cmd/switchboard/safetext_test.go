package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// hostileText has what controls a terminal: a title, a color, C1, NUL, and a text that
// runs the other way.
const hostileText = "a\x1b]0;title\x07b\x1b[31mc\u009b2Jd\x00e\u202ef\u2066g\x7fh\rи"

func TestTextDropsWhatControlsATerminal(t *testing.T) {
	t.Parallel()
	for _, color := range []bool{false, true} {
		var out strings.Builder
		p := &printer{w: safeText{&out, color}, color: color}
		p.line("%s %s", p.paint(yellow, "own"), hostileText)
		want := "own a]0;titleb[31mc2Jdefgh\nи\n"
		if color { // of a text it can be no more than a color
			want = "\x1b[33mown\x1b[39m a]0;titleb\x1b[31mc2Jdefgh\nи\n"
		}
		if out.String() != want {
			t.Errorf("color %v: %q, want %q", color, out.String(), want)
		}
	}
}

func TestJSONKeepsItsValueWithoutControllingATerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	e := json.NewEncoder(safeJSON{&out})
	if err := e.Encode(hostileText); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\x00\x07\x7f\r\u009b\u202e\u2066") {
		t.Errorf("it controls a terminal: %q", out.String())
	}
	var got string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got != hostileText {
		t.Errorf("%q, %v, want %q", got, err, hostileText)
	}
}
