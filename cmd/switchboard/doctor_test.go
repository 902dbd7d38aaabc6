package main

import (
	"strings"
	"testing"
	"time"
)

// What later checks find in an area stands with what earlier ones found there.
func TestEachAreaIsPrintedOnce(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	d := &diagnosis{}
	d.add("Model", levelOK, "", "a")
	d.add("Store", levelOK, "", "b")
	d.add("Model", levelOK, "", "c")
	(&printer{w: &b, zone: time.UTC}).diagnosis(d)
	if want := "Model\n  ✓ a\n  ✓ c\nStore\n  ✓ b\n\n"; !strings.HasPrefix(b.String(), want) {
		t.Errorf("got:\n%s", b.String())
	}
}
