package memory

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	b := setup(t)
	from := contract.Command{Agent: "chat", Memory: []string{"personal"}, Sender: "Anna"}
	give := func(command, text, want string) {
		t.Helper()
		if o := b.Command(command, text, from).MustAck(t); !strings.Contains(o.Content, want) {
			t.Errorf("/%s %s: got %q, want %q", command, text, o.Content, want)
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
	if o := b.Command("memories", "kettles", from); strings.Contains(o.Content, "plants") {
		t.Errorf("an unrelated memory is shown: %s", o.Content)
	}
	give("forget", "", "Usage: /forget IDS")
	give("forget", "mnothing", "Nothing was forgotten: there is no memory mnothing")
	var ids []string
	for _, v := range decode[listing](t, b.MustCall("recall", fields{"query": "kettle"})).Memories {
		ids = append(ids, v.ID)
	}
	give("forget", strings.Join(ids, ", "), "Forgotten: "+ids[0])
	b.wantList("list_memories", nil, "Water the plants")
	from.Memory = nil
	give("memories", "", `the manifest of "chat" lacks "memory: [personal]"`)
	give("remember", "x", `the manifest of "chat" lacks "memory: [personal]"`)
}
