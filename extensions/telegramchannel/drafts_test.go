package telegramchannel

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/draft"
	"github.com/switchboard-run/switchboard/sdk/typing"
)

func TestADraftGrowsIntoTheAnswer(t *testing.T) {
	t.Parallel()
	for name, chat := range map[string]int64{"private": 7, "group": -5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				asked := b.Inject(tg.Incoming{Chat: tg.Chat{ID: chat}, Text: "Tell me a story"}).Message
				d := sdk.Draft{ID: "e1", Conversation: fmt.Sprint(chat), ReplyTo: fmt.Sprint(asked)}
				b.streams(d, story, -1)
				seen := b.states()
				if len(seen) < 2 {
					t.Fatalf("%d states of the draft: %+v", len(seen), seen)
				}
				for i, m := range seen {
					said := strings.TrimSuffix(m.Text, draft.Mark)
					if said == m.Text || !strings.HasPrefix(story, strings.SplitN(said, "Every", 2)[0][:20]) || m.ID != seen[0].ID ||
						m.Edits != i {
						t.Errorf("state %d is %+v", i, m)
					}
				}
				if keys := b.stored(); len(keys) != 1 || keys[0] != "draft/100001/e1" {
					t.Errorf("on record are %q", keys)
				}
				m := sdk.Message{ID: "e2", Text: story, Conversation: d.Conversation, ReplyTo: d.ReplyTo, DraftID: "e1"}
				r := b.delivers(m)
				got := b.only(chat)
				if strings.Contains(got.Text, "▍") || !strings.HasSuffix(got.Text, "until the end.") || len(got.Entities) != 2 ||
					got.ID != seen[0].ID {
					t.Errorf("the answer is %+v", got)
				}
				if want := map[bool]int{true: asked}[chat < 0]; got.ReplyTo != want {
					t.Errorf("the answer is to message %d, want %d", got.ReplyTo, want)
				}
				if want := fmt.Sprintf("%d/%d", chat, got.ID); r.ProviderID != want || len(b.stored()) != 0 {
					t.Errorf("receipt %+v, on record %q", r, b.stored())
				}
				// What is late changes nothing.
				b.c.Draft(b.t.Context(), sdk.Draft{ID: "e1", Conversation: d.Conversation, Text: story[:60]})
				actions := len(b.Actions(chat))
				time.Sleep(time.Minute)
				if b.only(chat).Edits != got.Edits || len(b.Actions(chat)) != actions {
					t.Errorf("after the answer the chat has %+v", b.only(chat))
				}
				// The same again, whatever became of the acknowledgement.
				if r := b.delivers(repeated(m)); r.ProviderID != fmt.Sprintf("%d/%d", chat, got.ID) ||
					b.only(chat).Text != got.Text {
					t.Errorf("repeated: %+v, %+v", r, b.only(chat))
				}
				for _, r := range b.Refused() {
					if r.Status == 429 {
						t.Errorf("refused: %+v", r)
					}
				}
			})
		})
	}
}

func TestTypingIsShownFirstAndWhenTheTextPauses(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		d := sdk.Draft{ID: "e1", Conversation: "7"}
		b.c.Draft(b.t.Context(), d)
		time.Sleep(typing.Delay + 100*time.Millisecond)
		if len(b.Actions(7)) != 1 {
			t.Errorf("actions: %+v", b.Actions(7))
		}
		b.streams(d, story, -1)
		if n := len(b.Actions(7)); n > 1 {
			t.Errorf("%d actions while the text grows", n)
		}
		time.Sleep(2 * typingEvery)
		if n := len(b.Actions(7)); n < 2 {
			t.Errorf("%d actions while a tool runs", n)
		}
		edits := b.only(7).Edits
		time.Sleep(time.Minute)
		if got := b.only(7).Edits; got != edits {
			t.Errorf("%d edits that change nothing", got-edits)
		}
	})
}

func TestQuickOrShortAnswersHaveNoDraft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, "Yes. No. Perhaps.", -1)
		time.Sleep(10 * time.Second)
		if all := b.Messages(7); len(all) != 0 {
			t.Errorf("a short text is shown: %+v", all)
		}
		b.c.Draft(b.t.Context(), sdk.Draft{ID: "e2", Conversation: "7", Text: story})
		time.Sleep(draft.Delay / 2)
		b.delivers(sdk.Message{Text: story, Conversation: "7", DraftID: "e2"})
		time.Sleep(10 * time.Second)
		if got := b.only(7); got.Edits != 0 {
			t.Errorf("an early text is shown: %+v", got)
		}
	})
}

// However slow the network and whatever else is sent, Telegram never has to
// refuse anything, all answers arrive, and drafts are shown.
func TestDraftsKeepTheLimits(t *testing.T) {
	t.Parallel()
	const chats, groups, parts = 50, 4, 5
	inBubble(t, func(b *bench) {
		random := seed.Rand(t)
		upTo := func(n time.Duration) time.Duration { return time.Duration(random.Int64N(int64(n))) }
		b.wire.takes(func() time.Duration {
			if upTo(20) == 0 {
				return upTo(3 * time.Second)
			}
			return upTo(100 * time.Millisecond)
		})
		talk := func(chat int64, thread string) {
			d := sdk.Draft{ID: fmt.Sprintf("d%d/%s", chat, thread), Conversation: fmt.Sprint(chat), Thread: thread}
			b.streams(d, story+" "+story, -1)
			for part := 1; part <= parts; part++ {
				m := sdk.Message{Text: fmt.Sprintf("%s (%d)", story, part), Conversation: d.Conversation, Thread: thread,
					Part: part, Parts: parts}
				if part == 1 {
					m.DraftID = d.ID
				}
				for _, err := b.c.Send(b.t.Context(), m); err != nil; _, err = b.c.Send(b.t.Context(), m) {
					if !strings.Contains(err.Error(), "waiting") {
						t.Errorf("chat %d: %v", chat, err)
						return
					}
					time.Sleep(time.Second)
				}
			}
		}
		var all sync.WaitGroup
		for chat := range int64(chats) {
			b.AddChat(tg.Chat{ID: 100 + chat})
			all.Go(func() { talk(100+chat, "") })
		}
		for g := range int64(groups) {
			id := -1_000_000_000_100 - g
			b.AddChat(tg.Chat{ID: id, Forum: true}, 1, 2, 3)
			for _, thread := range []string{"1", "2", "3"} {
				all.Go(func() { talk(id, thread) })
			}
		}
		all.Wait()
		b.unrefused()
		edits := 0
		for _, id := range b.Chats() {
			messages, want := b.Messages(id), parts
			if id < 0 {
				want = 3 * parts
			}
			if len(messages) != want {
				t.Errorf("chat %d has %d messages, want %d", id, len(messages), want)
			}
			for _, m := range messages {
				edits += m.Edits
				if strings.Contains(m.Text, "▍") {
					t.Errorf("chat %d still has a draft: %q", id, m.Text)
				}
			}
		}
		if edits < 5*chats {
			t.Errorf("drafts were edited %d times only", edits)
		}
	})
}

// Drafts never delay a send.
func TestASendNeverWaitsForDrafts(t *testing.T) {
	t.Parallel()
	for name, chat := range map[string]int64{"private": 7, "group": -5} {
		for _, paced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", name, paced), func(t *testing.T) {
				t.Parallel()
				for words := 10; words < 30; words += 3 {
					inBubble(t, func(b *bench) {
						b.pace = paced
						b.start()
						b.AddChat(tg.Chat{ID: chat})
						d := sdk.Draft{ID: "e1", Conversation: fmt.Sprint(chat)}
						b.streams(d, story, words)
						began := time.Now()
						b.delivers(sdk.Message{Text: "Between.", Conversation: d.Conversation})
						b.delivers(sdk.Message{Text: story, Conversation: d.Conversation, DraftID: "e1"})
						// Two requests, and at most one of a draft that was under way.
						if took := time.Since(began); took > 3*40*time.Millisecond {
							t.Errorf("after %d words: the sends took %s", words, took)
						}
						b.unrefused()
					})
				}
			})
		}
	}
}

func TestTheAnswerFindsItsDraftAfterARestart(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		d := sdk.Draft{ID: "e1", Conversation: "7"}
		b.streams(d, story, 15)
		draft := b.only(7)
		b.start()
		b.streams(d, "Once upon another time"+story, 20) // the turn begins anew, with the same draft
		if got := b.only(7); got.ID != draft.ID || !strings.HasPrefix(got.Text, "Once upon another time") {
			t.Errorf("the draft is %+v", got)
		}
		b.start()
		m := repeated(sdk.Message{Text: "The **end**.", Conversation: "7", DraftID: "e1"})
		if r := b.delivers(m); r.ProviderID != fmt.Sprintf("7/%d", draft.ID) {
			t.Errorf("receipt %+v", r)
		}
		if got := b.only(7); got.Text != "The end." || got.ID != draft.ID {
			t.Errorf("the answer is %+v", got)
		}
		if keys := b.stored(); len(keys) != 0 {
			t.Errorf("on record are %q", keys)
		}
	})
}

func TestAnAnswerWhoseAcknowledgementIsLostEditsAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, story, 15)
		m := sdk.Message{Text: "The end.", Conversation: "7", DraftID: "e1"}
		if _, err := b.c.Send(b.t.Context(), m); err != nil {
			t.Fatal(err)
		}
		b.start() // nothing was committed
		b.delivers(repeated(m))
		if got := b.only(7); got.Text != "The end." {
			t.Errorf("the answer is %+v", got)
		}
	})
}

func TestTheAnswerWaitsForAPendingDraft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		d := sdk.Draft{ID: "e1", Conversation: "7"}
		b.streams(d, story, 15)
		b.wire.takes(func() time.Duration { return 2 * time.Second })
		b.streams(d, story, 20)
		b.wire.takes(func() time.Duration { return time.Millisecond })
		b.delivers(sdk.Message{Text: "The end.", Conversation: "7", DraftID: "e1"})
		time.Sleep(time.Minute)
		if got := b.only(7); got.Text != "The end." {
			t.Errorf("the answer is %+v", got)
		}
	})
}

// A draft that may or may not have been sent is the only one of its turn.
func TestThereIsNoSecondDraft(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.wire.lose = 1
		b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, story, -1)
		time.Sleep(time.Minute)
		b.only(7)
		b.delivers(sdk.Message{Text: "The end.", Conversation: "7", DraftID: "e1"})
		if all := b.Messages(7); len(all) != 2 || all[1].Text != "The end." {
			t.Errorf("messages: %+v", all)
		}
	})
}

func TestADeletedDraftIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refusal string
		repeat  bool
	}{
		"deleted":  {"message to edit not found", false},
		"too old":  {"message can't be edited", false},
		"repeated": {"message to edit not found", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.AddChat(tg.Chat{ID: 7})
				b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, story, 15)
				b.Fail("editMessageText", 1, tg.Fault{Status: 400, Description: "Bad Request: " + tc.refusal})
				m := sdk.Message{Text: "The end.", Conversation: "7", DraftID: "e1"}
				want := m.Text
				if tc.repeat { // the former attempt may have sent it anew
					m = repeated(m)
					want = contract.RepeatMark + want
				}
				b.delivers(m)
				if all := b.Messages(7); len(all) != 2 || all[1].Text != want {
					t.Errorf("messages: %+v", all)
				}
				if keys := b.stored(); len(keys) != 0 {
					t.Errorf("on record are %q", keys)
				}
			})
		})
	}
}

// An edit whose outcome is unknown is made again: that is no uncertain sending.
func TestAnUnansweredEditIsRepeated(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, story, 15)
		m := sdk.Message{Text: "The end.", Conversation: "7", DraftID: "e1"}
		b.FailStatus("editMessageText", 1, 504)
		if _, err := b.c.Send(b.t.Context(), m); err == nil || strings.Contains(err.Error(), "unknown") {
			t.Errorf("an edit without an answer: %v", err)
		}
		b.delivers(m)
		if got := b.only(7); got.Text != "The end." {
			t.Errorf("the answer is %+v", got)
		}
	})
}

func TestDraftsObeyTheRetryAfterOfTelegram(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		b.Fail("sendMessage", 1, tg.Fault{Status: 429, RetryAfter: 30})
		b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, story, -1)
		if n := b.Calls("sendMessage"); n != 1 {
			t.Errorf("%d requests within the time", n)
		}
		time.Sleep(30 * time.Second)
		b.only(7)
	})
}

func TestUnfinishedMarkdownIsShown(t *testing.T) {
	t.Parallel()
	const source = "# Title\n\nSome **bold _and both_** and `code` with [a link](https://example.com/a_b*c) " +
		"~~gone~~.\n\n- one **two\n- three**\n\n> quote `open\n\n```go\nfunc main() { fmt.Println(\"*_`\") }\n```\n\n" +
		"| a | b |\n|---|---|\n| 1 | **2** |\n\n\\* <b>html</b> &amp; 🫖"
	s := tg.Start(t)
	c, _ := begin(t, newMemory(), s, s.Token())
	s.AddChat(tg.Chat{ID: 7})
	b := c.active.Load().api.bot
	sent, err := b.SendMessage(t.Context(), newMessage(target{chat: 7}, 0))
	if err == nil {
		t.Fatalf("an empty message was sent: %+v", sent)
	}
	p := newMessage(target{chat: 7}, 0)
	p.Text = "begin"
	if sent, err = b.SendMessage(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(source); i += 2 {
		said, entities := preview(source[:i]+"x", false)
		if err := c.active.Load().edit(t.Context(), 7, sent.ID, said, entities, nil); err != nil && !isUnchanged(err) {
			t.Errorf("%q: %v", source[:i], err)
		}
		if !strings.HasSuffix(said, draft.Mark) {
			t.Errorf("%q has no mark", said)
		}
	}
}

func TestADraftWithRefusedFormattingIsShownPlain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		text := strings.Replace(story, "Once", "**Once**", 1)
		b.Fail("sendMessage", 1, tg.Fault{Status: 400, Description: "Bad Request: can't parse entities: x"})
		b.streams(sdk.Draft{ID: "e1", Conversation: "7"}, text, -1)
		if got := b.only(7); !strings.HasPrefix(got.Text, "**Once**") || len(got.Entities) != 0 {
			t.Errorf("the draft is %+v", got)
		}
	})
}

func TestALongDraftFits(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"plain":   strings.Repeat("word ", 3000),
		"emoji":   strings.Repeat("🫖", 5000),
		"growing": strings.Repeat("- a\n", 3000),
		"table":   "| a | b |\n|--|--|\n" + strings.Repeat("| x | y |\n", 600),
	} {
		if said, _ := preview(source, false); utf16Len(said) > maxText {
			t.Errorf("%s: the draft has %d units", name, utf16Len(said))
		}
	}
}

func TestRemoveDraft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  *tg.Fault
		again  bool   // it asks to be called again
		left   string // what is left
		remain int
	}{
		"simply": {},
		"gone already": {fault: &tg.Fault{Status: 400, Description: "Bad Request: message to delete not found"},
			left: emptyText, remain: 1},
		"too old": {fault: &tg.Fault{Status: 400,
			Description: "Bad Request: message can't be deleted for everyone"}, left: emptyText, remain: 1},
		"slow down":       {fault: &tg.Fault{Status: 429, RetryAfter: 5}, again: true},
		"trouble":         {fault: &tg.Fault{Status: 502}, again: true},
		"nobody answered": {fault: &tg.Fault{Status: 504}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.AddChat(tg.Chat{ID: 7})
				d := sdk.Draft{ID: "e1", Conversation: "7"}
				b.streams(d, story, 15)
				b.only(7)
				b.start() // the process does not matter
				if tc.fault != nil {
					b.Fail("deleteMessage", 1, *tc.fault)
				}
				d.Done = true
				err := b.c.RemoveDraft(b.t.Context(), d)
				if (err != nil) != tc.again {
					t.Fatalf("removing: %v", err)
				}
				if tc.again {
					time.Sleep(5 * time.Second)
					err = b.c.RemoveDraft(b.t.Context(), d)
				}
				if all := b.Messages(7); err != nil || len(all) != tc.remain || tc.remain > 0 && all[0].Text != tc.left {
					t.Errorf("left are %+v, %v", all, err)
				}
				if keys := b.stored(); len(keys) != 0 {
					t.Errorf("on record are %q", keys)
				}
				b.streams(d, story, 15) // late
				if all := b.Messages(7); len(all) != tc.remain {
					t.Errorf("it came back: %+v", all)
				}
				// Again, and one that there never was.
				for _, id := range []string{"e1", "e9"} {
					if err := b.c.RemoveDraft(b.t.Context(), sdk.Draft{ID: id, Conversation: "7"}); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			})
		})
	}
}

// Drafts whose answer never came are forgotten, in memory and in the store.
func TestOldDraftsAreForgotten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		for id, k := range map[int64]string{7: "e1", 8: "e2", 9: "e3"} {
			b.AddChat(tg.Chat{ID: id})
			b.streams(sdk.Draft{ID: k, Conversation: fmt.Sprint(id)}, story, 15)
			time.Sleep(4 * 24 * time.Hour)
		}
		if keys := b.stored(); len(keys) != 2 {
			t.Errorf("after 8 days on record are %q", keys)
		}
		if n := b.c.active.Load().drafts.Len(); n != 2 {
			t.Errorf("%d drafts are remembered", n)
		}
		time.Sleep(draft.MaxAge)
		b.start()
		if keys := b.stored(); len(keys) != 0 {
			t.Errorf("after a start on record are %q", keys)
		}
	})
}

func TestEndedDraftsAreForgotten(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		drafts := b.c.active.Load().drafts
		for i := range 3 * draft.MaxEnded {
			id := fmt.Sprint("e", i)
			drafts.Update(sdk.Draft{ID: id}, target{chat: 7})
			if _, err := drafts.Finish(b.t.Context(), id); err != nil {
				t.Fatal(err)
			}
			drafts.Delivered(id)
			drafts.Delivered(id)
		}
		if n := drafts.Len(); n != draft.MaxEnded {
			t.Errorf("%d drafts are remembered", n)
		}
	})
}

func TestDraftsOfTwoTurnsAreTwoMessages(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.AddChat(tg.Chat{ID: 7})
		first, second := sdk.Draft{ID: "e1", Conversation: "7"}, sdk.Draft{ID: "e2", Conversation: "7"}
		b.streams(first, story, 15)
		b.streams(second, "Meanwhile, "+story, 15) // somebody wrote in between
		b.delivers(sdk.Message{Text: "The second answer.", Conversation: "7", DraftID: "e2"})
		b.streams(first, story, 20)
		b.delivers(sdk.Message{Text: "The first answer.", Conversation: "7", DraftID: "e1"})
		if all := b.Messages(7); len(all) != 2 || all[0].Text != "The first answer." || all[1].Text != "The second answer." {
			t.Errorf("messages: %+v", all)
		}
		b.unrefused()
	})
}

func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}
