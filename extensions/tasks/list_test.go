package tasks

import (
	"encoding/json"
	"strings"
	"testing"
)

// Prompts are listed shortened, and only in their own conversation.
func TestQueueShowsPreviews(t *testing.T) {
	play(t, func(g *game) {
		g.call(main, "push", fields{"name": "long", "prompt": "\n Research the  API of " + strings.Repeat("é", 60)})
		g.call(main, "push", fields{"name": "lines", "prompt": "Fix this:\n1. all"})
		g.call(main, "run", fields{"count": 1})
		text := func(session string, arguments fields) string {
			t.Helper()
			content, err := g.try(session, "e1", "queue", arguments)
			var out listed
			if err != nil || json.Unmarshal([]byte(content), &out) != nil {
				t.Fatalf("/queue: %v, %s", err, content)
			}
			return out.Text
		}
		const begins = "Queued:\n- lines: Fix this: …\n\nRunning:\n- long (started less than a second ago): Research the API of "
		if got, want := text(root, nil), begins+strings.Repeat("é", maxPreview-21)+"…"; got != want {
			t.Errorf("/queue says\n%s\nwant\n%s", got, want)
		}
		if got := text("another conversation", fields{"all": true}); strings.Contains(got, "Research") ||
			!strings.Contains(got, "- lines in "+root+"\n") {
			t.Errorf("elsewhere /queue all says\n%s", got)
		}
		g.finishTasks("long")
		if got := text(root, nil); strings.Contains(got, "Research") {
			t.Errorf("of what is finished /queue says\n%s", got)
		}
	})
}
