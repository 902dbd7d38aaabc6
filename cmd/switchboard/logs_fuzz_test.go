package main

import (
	"strings"
	"testing"
)

// FuzzLogLine: every line of a log can be shown.
func FuzzLogLine(f *testing.F) {
	for _, seed := range []string{
		`{"@timestamp":"2026-11-20T20:05:31.188127+01:00","@level":"info","@message":"it runs","@module":"kernel","home":"/tmp"}`,
		`{"@message":["a"],"@level":7,"x":{"y":"z"}}`, `{`, `null`, `[]`, "panic: oh", "\x1b[31mred\x00",
		`{"a\nb":"\u001b[2J"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		l := parseLogLine("kernel", raw)
		if l.raw != raw || l.from != "kernel" {
			t.Errorf("%q became %+v", raw, l)
		}
		if !strings.HasPrefix(strings.TrimSpace(raw), "{") && l.text != raw {
			t.Errorf("%q is shown as %q", raw, l.text)
		}
	})
}
