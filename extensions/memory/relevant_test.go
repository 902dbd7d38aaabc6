package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRelevant(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if r := b.Ask("relevant", fields{"query": "hello"}); r.GetContent() != "" || !r.GetNothing() {
		t.Errorf("without memories: got %v", r)
	}
	b.remember(fields{"text": "somewhere else", "scope": "work"})
	if r := b.Ask("relevant", fields{"query": "somewhere"}, as("chat", "personal")); r.GetContent() != "" ||
		!r.GetNothing() {
		t.Errorf("without memories in the scope: got %v", r)
	}
	b.MustCall("forget_all", nil)
	b.remember(fields{"text": "The router stands in the hall"})
	if r := b.Ask("relevant", fields{"query": "hello, how are you?"}); r.GetContent() != "" || r.GetNothing() {
		t.Errorf("without a match: got %v", r)
	}
	b.remember(fields{"text": "Write to me in Telegram", "kind": "preference", "channel_id": "telegram_channel"})
	b.remember(fields{"text": "Water the plants", "due": "2026-02-27", "channel_id": "telegram_channel"})
	b.remember(fields{"text": "Restart the router", "due": "2026-04-01"})
	b.remember(fields{"text": "Buy shoes", "kind": "open"})
	b.pass(24 * time.Hour)
	b.remember(fields{"text": "Answer briefly", "kind": "preference"})

	id := func(text string) string {
		for _, v := range decode[listing](t, b.MustCall("list_memories", nil)).Memories {
			if v.Text == text {
				return v.ID
			}
		}
		t.Fatalf("%q is not remembered", text)
		return ""
	}
	always := fmt.Sprintf(`Preferences:
- Write to me in Telegram (channel telegram_channel; 1 Mar 2026) [%s]
- Answer briefly (2 Mar 2026) [%s]

Open items that are due:
- Water the plants (overdue since Fri 27 Feb 2026; channel telegram_channel; 1 Mar 2026) [%s]`,
		id("Write to me in Telegram"), id("Answer briefly"), id("Water the plants"))
	if got := b.MustCall("relevant", fields{"query": "what is the weather"}); got != always {
		t.Errorf("got\n%s\nwant\n%s", got, always)
	}
	if got := b.MustCall("relevant", nil); got != always {
		t.Errorf("without a query: got\n%s\nwant\n%s", got, always)
	}
	want := always + fmt.Sprintf(`

Remembered:
- Restart the router (open item; due Wed 1 Apr 2026; 1 Mar 2026) [%s]
- The router stands in the hall (1 Mar 2026) [%s]`, id("Restart the router"), id("The router stands in the hall"))
	got := b.MustCall("relevant", fields{"query": "what about the routers, and the plants?"})
	if swapped := strings.Split(got, "\n"); len(swapped) > 2 &&
		strings.Contains(swapped[len(swapped)-1], "Restart") { // made in the same second
		n := len(swapped)
		swapped[n-1], swapped[n-2] = swapped[n-2], swapped[n-1]
		got = strings.Join(swapped, "\n")
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRelevantHasABudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var doc strings.Builder
	for _, kind := range []string{"Preferences", "Facts", "Open items"} {
		fmt.Fprintf(&doc, "## %s\n", kind)
		for i := range 60 {
			fmt.Fprintf(&doc, "- %s № %d: о чайнике и кухне %s\n", kind, i,
				strings.Repeat("очень длинное предложение ", 1+i%40))
			if kind == "Open items" {
				doc.WriteString("  - due: 2026-02-01\n")
			}
		}
	}
	b.MustCall("import_memories", fields{"text": doc.String()})
	b.pass(-48 * time.Hour) // older than all of these
	b.remember(fields{"text": "Пиши мне в Telegram", "kind": "preference", "channel_id": "telegram_channel"})
	b.pass(48 * time.Hour)
	got := b.MustCall("relevant", fields{"query": "чайник"})
	if len(got) > relevantBytes || len(got) < relevantBytes/2 {
		t.Errorf("it has %d bytes", len(got))
	}
	for _, part := range []string{"Preferences:\n- Пиши мне в Telegram (channel telegram_channel;",
		"\nOpen items that are due:\n- ", "\nRemembered:\n- ", "more)"} {
		if !strings.Contains(got, part) {
			t.Errorf("without %q:\n%s", part, got)
		}
	}
}
