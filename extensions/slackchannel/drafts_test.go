package slackchannel

import (
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	st "github.com/switchboard-run/switchboard/extensions/slackchannel/slacktest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/draft"
)

const story = "Once upon a time there was a small switchboard, and it had **many** lines."

// drafts shows a text as a draft, and waits for its message.
func (w *world) drafts(id, text string) st.Message {
	w.t.Helper()
	if err := w.Draft(w.ctx(), &extensionv1.DraftUpdate{DraftId: id, Conversation: direct, Text: text}); err != nil {
		w.t.Fatal(err)
	}
	var shown st.Message
	w.awaits("the draft", func() bool {
		for _, m := range w.slack.Messages(direct) {
			if strings.HasSuffix(m.Said, draft.Mark) {
				shown = m
				return true
			}
		}
		return false
	})
	w.WaitUntil("its record", func() bool { return len(w.Keys("draft/")) == 1 })
	return shown
}

// The final text is an edit of the draft, also after a crash and of an unknown outcome.
func TestDraftBecomesTheFinalText(t *testing.T) {
	t.Parallel()
	w := running(t)
	shown := w.drafts("d1", story)
	if want := strings.ReplaceAll(story, "**", "") + draft.Mark; shown.Said != want {
		t.Errorf("the draft is %q, want %q", shown.Said, want)
	}
	w.Restart(quick())
	w.AwaitReadiness(sdk.Ready)
	m := text("The end.")
	m.DraftID = "d1"
	m.Actions = []contract.Action{{Label: "Again", Command: "/again"}}
	w.slack.Fail("chat.update", 1, st.Fault{Break: st.BreakAfter})
	w.settles(m)
	w.saysOnly(direct, "The end.", "end")
	if got := w.slack.Messages(direct)[0]; got.TS != shown.TS || len(got.Buttons) != 1 {
		t.Errorf("Slack has %+v", got)
	}
	if keys := w.Keys("draft/"); len(keys) != 0 {
		t.Errorf("stored %q", keys)
	}
}

func TestDraftOfATurnWithoutText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault string
		left  []string
	}{
		"it is removed":           {"", []string{"end"}},
		"somebody was faster":     {"message_not_found", []string{draft.Mark, "end"}}, // the fake still has it
		"Slack does not allow it": {"cant_delete_message", []string{emptyText, "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			w.drafts("d1", story)
			if tc.fault != "" {
				w.slack.Fail("chat.delete", 1, st.Fault{Error: tc.fault})
			}
			m := text("")
			m.DraftID = "d1"
			w.settles(m)
			got := w.said(direct)
			if len(got) != len(tc.left) || !strings.HasSuffix(got[0], tc.left[0]) {
				t.Errorf("Slack has %q", got)
			}
			if keys := w.Keys("draft/"); len(keys) != 0 {
				t.Errorf("stored %q", keys)
			}
		})
	}
}

// A draft whose message is gone is followed by a new message.
func TestDraftThatWasDeleted(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.drafts("d1", story)
	w.slack.Fail("chat.update", 1, st.Fault{Error: "message_not_found"})
	m := text("The end.")
	m.DraftID = "d1"
	w.Send(m).MustAck(t)
	if got := w.said(direct); len(got) != 2 || got[1] != "The end." {
		t.Errorf("Slack has %q", got)
	}
}

func TestLongTextsFit(t *testing.T) {
	t.Parallel()
	w := running(t)
	for name, source := range map[string]string{
		"words":   strings.Repeat("word ", 800),
		"escapes": strings.Repeat("<&> ", 1000),
		"emoji":   strings.Repeat("🫖", 2000),
		"list":    strings.Repeat("- a\n", 1000),
		"table":   "| a | b |\n|--|--|\n" + strings.Repeat("| x | y |\n", 390),
		"styles":  strings.Repeat("**a** _b_ ", 400),
		"links":   strings.Repeat("[a](https://x.org) ", 210),
	} {
		for what, said := range map[string]rendered{
			"final": render(source, nil), "draft": preview(source, false), "plain": preview(source, true),
		} {
			r, err := w.slack.Post(direct, said.text, said.blocks)
			if err != nil {
				t.Errorf("%s, %s: %v %s", name, what, err, r)
			}
		}
	}
}
