package main

import (
	"strings"
	"testing"
	"time"
)

func TestColumnsStandUnderTheirTitles(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	p := &printer{w: &b, zone: time.UTC}
	p.table("ID AGENT DETAIL", [][]cell{
		{text("cli_channel"), text("orchestrator"), text("")},
		{text("x"), text("orchestrator"), text("no token")},
	})
	want := "ID           AGENT         DETAIL\n" +
		"cli_channel  orchestrator\n" +
		"x            orchestrator  no token\n"
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}
