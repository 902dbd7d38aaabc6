package memory

import (
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	from := as("chat", "personal")
	give := func(command, text, want string) {
		t.Helper()
		if answer := b.Command(command, text, from); !strings.Contains(answer, want) {
			t.Errorf("/%s %s: got %q, want %q", command, text, answer, want)
		}
	}
	give("memories", "", "I don't remember anything yet.")
	give("remember", "", "Text is empty.")
	give("remember", "The kettle is in the kitchen\nand hot", "Remembered: The kettle is in the kitchen and hot [m")
	give("remember", "The kettle is in the hall",
		"I also remember the following. If something is outdated, /forget it:\n\n"+
			"- The kettle is in the kitchen and hot (")
	give("remember", "The kettle is in the hall", "Already known: The kettle is in the hall [m")
	give("memories", "zebra", "No memories found.")
	give("memories", "preference", "No memories found.")
	b.remember(fields{"text": "Water the plants", "kind": "open"})
	give("memories", "", "Open items:\n- Water the plants (1 Mar 2026) [m")
	give("memories", "", "Facts:\n- The kettle is in the")
	give("memories", "OPEN", "Water the plants")
	give("memories", "kettles", "The kettle is in the kitchen and hot (told by Anna; 1 Mar 2026)")
	if answer := b.Command("memories", "kettles", from); strings.Contains(answer, "plants") {
		t.Errorf("an unrelated memory is shown: %s", answer)
	}
	give("forget", "", "Usage: /forget IDS")
	give("forget", "mnothing", "Nothing was forgotten: there is no memory mnothing")
	var ids []string
	for _, v := range decode[listing](t, b.MustCall("recall", fields{"query": "kettle"})).Memories {
		ids = append(ids, v.ID)
	}
	give("forget", strings.Join(ids, ", "), "Forgotten: "+ids[0])
	b.wantList("list_memories", nil, "Water the plants")
	from = as("chat")
	give("memories", "", `the manifest of "chat" lacks "memory: [personal]"`)
	give("remember", "x", `the manifest of "chat" lacks "memory: [personal]"`)
}
