package modelapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

func asJSON(tools []*extensionv1.Tool) ([]byte, error) { return json.Marshal(tools) }

func TestToolsAreEncodedOncePerChange(t *testing.T) {
	t.Parallel()
	list := func(description string) []*extensionv1.Tool {
		return []*extensionv1.Tool{{Name: "look", Description: description}, {Name: "listen"}}
	}
	var s Toolsets
	say := func(description string) string {
		b, err := s.Encoded(list(description), asJSON)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), `"description":"`+description+`"`) {
			t.Errorf("the tools for %s are %s", description, b)
		}
		return string(b)
	}
	for i := range 3 * maxKept {
		first := say(strings.Repeat("x", i+1))
		if again := say(strings.Repeat("x", i+1)); again != first {
			t.Errorf("said again: %s, not %s", again, first)
		}
	}
	say("x")
	if len(s.kept) != maxKept {
		t.Errorf("%d lists are kept, want %d", len(s.kept), maxKept)
	}
	shorter, err := s.Encoded(list("x")[:1], asJSON)
	if err != nil || strings.Contains(string(shorter), "listen") {
		t.Errorf("a part of the tools is %s: %v", shorter, err)
	}
}
