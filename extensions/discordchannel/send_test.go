package discordchannel

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	dc "github.com/switchboard-run/switchboard/extensions/discordchannel/discordtest"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

// known is a running channel that Anna has written to.
func known(t *testing.T, opts ...dc.Option) (*dc.Server, *sdktest.Kernel) {
	t.Helper()
	s, k := running(t, opts...)
	s.Say(anna, "hello")
	k.AwaitReceived(1)
	return s, k
}

func TestOutcomesOfASend(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault dc.Fault
		to    string
		want  busv1.Outcome_Kind
		text  string
	}{
		"limited":            {dc.Fault{Status: 429, RetryAfter: 7}, "", busv1.Outcome_KIND_RETRY, "limited by Discord"},
		"limited altogether": {dc.Fault{Status: 429, RetryAfter: 7, Global: true}, "", busv1.Outcome_KIND_RETRY, "limited by Discord"},
		"server error":       {dc.Fault{Status: 502, Body: "<html>"}, "", busv1.Outcome_KIND_RETRY, "problem at Discord"},
		"not reached":        {dc.Fault{Status: 503}, "", busv1.Outcome_KIND_RETRY, "problem at Discord"},
		"no permission":      {dc.Fault{Status: 403, Code: 50013}, "", busv1.Outcome_KIND_DROP, "may not write there"},
		"blocked":            {dc.Fault{Status: 403, Code: 50007}, "", busv1.Outcome_KIND_DROP, "takes no messages"},
		"no such channel":    {dc.Fault{}, "999999", busv1.Outcome_KIND_DROP, "does not exist any more"},
		"no id":              {dc.Fault{}, "general", busv1.Outcome_KIND_DROP, "not the id of a Discord channel"},
		"token":              {dc.Fault{Status: 401}, "", busv1.Outcome_KIND_RETRY, "token refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, k := known(t)
			if tc.to == "" {
				tc.to = dc.DM(anna)
				s.Fail("createMessage", 1, tc.fault)
			}
			o := k.Send(send(tc.to, "hi")).MustBe(t, tc.want)
			if !strings.Contains(o.String(), tc.text) {
				t.Errorf("%s, want %q", o, tc.text)
			}
		})
	}
}

// A message whose answer is lost is sent again without a mark, and is there once.
func TestARepetitionIsTheSameMessage(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]dc.Break{"no answer": dc.BreakAfter, "half an answer": dc.BreakInsideAnswer} {
		s, k := known(t)
		s.Fail("createMessage", 1, dc.Fault{Break: b})
		k.BeginSend(send(dc.DM(anna), "hi"))
		if err := s.WaitCalls(t.Context(), "createMessage", 2); err != nil {
			t.Fatal(err)
		}
		k.Send(send(dc.DM(anna), "next")).MustAck(t)
		if all := s.Messages(dc.DM(anna)); len(all) != 2 || all[0].Text != "hi" || all[1].Text != "next" {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

// After the time for which Discord knows the nonce, the history has it.
func TestALateRepetitionIsFoundInTheHistory(t *testing.T) {
	t.Parallel()
	s, k := known(t)
	again := func(d *busv1.Delivery) { d.Uncertain, d.Attempt = true, 2 }
	marked := send(dc.DM(anna), contract.RepeatMark+"hi")
	marked.Unmarked = "hi"
	k.Hand(contract.TopicChannelSend+ID, marked, again).MustAck(t)
	if all := s.Messages(dc.DM(anna)); len(all) != 1 || all[0].Text != contract.RepeatMark+"hi" {
		t.Fatalf("not sent before: %+v", all)
	}
	first := awaitMessage(t, s, dc.DM(anna), 1)
	o := k.Hand(contract.TopicChannelSend+ID, marked, again, func(d *busv1.Delivery) { d.Event.Id = "other" })
	o.MustAck(t)
	o = k.Hand(contract.TopicChannelSend+ID, marked, again, func(d *busv1.Delivery) { d.Event.Id = "other" })
	o.MustAck(t)
	all := s.Messages(dc.DM(anna))
	if len(all) != 2 || all[1].ID == first.ID || all[1].Text != "hi" {
		t.Errorf("sent before: %+v", all)
	}
}

// The limits of one channel hold it alone back, and nothing is refused.
func TestLimitsOfAChannelHoldNobodyElse(t *testing.T) {
	t.Parallel()
	limits := dc.DiscordLimits()
	limits.Send = dc.Rate{Burst: 2, Window: time.Hour}
	s, k := known(t, dc.WithLimits(limits))
	s.Say(boris, "hello")
	k.AwaitReceived(2)
	for i := range 2 {
		k.Send(send(dc.DM(anna), fmt.Sprint(i))).MustAck(t)
	}
	o := k.Send(send(dc.DM(anna), "more")).MustBe(t, busv1.Outcome_KIND_RETRY)
	if !strings.Contains(o.String(), "limited by Discord") {
		t.Errorf("outcome %s", o)
	}
	k.Send(send(dc.DM(boris), "hi")).MustAck(t)
	if refused := s.Refused(); len(refused) != 0 {
		t.Errorf("refused %+v", refused)
	}
}

// Many conversations stay within the limit of the bot.
func TestLimitOfTheBot(t *testing.T) {
	t.Parallel()
	s, k := running(t, dc.WithLimits(dc.Limits{Bot: dc.Rate{Burst: 20, Window: 500 * time.Millisecond}}))
	const people = 30
	for i := range people {
		s.Say(fmt.Sprint(2000+i), "hello")
	}
	k.AwaitReceived(people)
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() { k.BeginSend(send(dc.DM(fmt.Sprint(2000+i)), "hi")) })
	}
	all.Wait()
	until(t, s, "all messages", func() bool { return s.Accepted() == people })
	for i := range people {
		if m := s.Messages(dc.DM(fmt.Sprint(2000 + i))); len(m) != 1 || m[0].Text != "hi" {
			t.Errorf("%d: %+v", i, m)
		}
	}
}

func TestOwnersPrivateChat(t *testing.T) {
	t.Parallel()
	s, k := running(t)
	k.Send(contract.ChannelSend{Text: "x", Kind: contract.SendNotice}).MustBe(t, busv1.Outcome_KIND_DROP)
	for range 2 {
		r := k.Send(contract.ChannelSend{Text: "due", Owner: anna, Kind: contract.SendNotice}).MustAck(t).Receipt()
		if r.GetConversation() != dc.DM(anna) {
			t.Errorf("receipt %v", r)
		}
	}
	if n := s.Calls("openDM"); n != 1 {
		t.Errorf("%d private chats were asked for", n)
	}
}

// longText is long enough for a draft.
const longText = "Once upon a time there was a small switchboard, and it had many, many lines. "

func draftOf(channel, id, text string) *extensionv1.DraftUpdate {
	return &extensionv1.DraftUpdate{Conversation: channel, DraftId: id, Text: text}
}

// awaitDraft waits for the message of a draft that is stored.
func awaitDraft(t *testing.T, s *dc.Server, k *sdktest.Kernel, id string) dc.Message {
	t.Helper()
	m := awaitMessage(t, s, dc.DM(anna), 1)
	k.WaitUntil("the id of the draft", func() bool { return len(k.Keys("draft/"+dc.BotID+"/"+id)) == 1 })
	return m
}

func TestDraftBecomesTheFinalText(t *testing.T) {
	t.Parallel()
	s, k := known(t)
	if err := k.Draft(t.Context(), draftOf(dc.DM(anna), "d1", longText)); err != nil {
		t.Fatal(err)
	}
	shown := awaitDraft(t, s, k, "d1")
	if !strings.HasSuffix(shown.Text, "▍") {
		t.Errorf("shown %q", shown.Text)
	}
	if s.Typing(dc.DM(anna)) == 0 {
		t.Error("it does not type")
	}
	k.Restart(New()) // its id survives
	m := send(dc.DM(anna), longText+"The end.")
	m.DraftID, m.Actions = "d1", []contract.Action{{Label: "OK", Command: "/ok"}}
	k.Send(m).MustAck(t)
	all := s.Messages(dc.DM(anna))
	if len(all) != 1 || all[0].ID != shown.ID || !strings.HasSuffix(all[0].Text, "The end.") || len(all[0].Buttons) != 1 {
		t.Errorf("messages %+v", all)
	}
	if keys := k.Keys("draft/"); len(keys) != 0 {
		t.Errorf("stored %q", keys)
	}
}

// The other node may still change its draft, so the final text is a message of its own.
func TestDraftOfAnotherNodeIsDeletedBeforeTheFinalText(t *testing.T) {
	t.Setenv(contract.NodeVariable, "a")
	s, k := known(t)
	if err := k.Draft(t.Context(), draftOf(dc.DM(anna), "d1", longText)); err != nil {
		t.Fatal(err)
	}
	shown := awaitDraft(t, s, k, "d1@a")
	t.Setenv(contract.NodeVariable, "b")
	k.Restart(New())
	m := send(dc.DM(anna), longText+"The end.")
	m.DraftID = "d1"
	k.Send(m).MustAck(t)
	all := s.Messages(dc.DM(anna))
	if len(all) != 1 || all[0].ID == shown.ID || !strings.HasSuffix(all[0].Text, "The end.") {
		t.Errorf("messages %+v", all)
	}
	if keys := k.Keys("draft/"); len(keys) != 0 {
		t.Errorf("stored %q", keys)
	}
}

// However fast a text grows, Discord has to refuse nothing, and the final text comes.
func TestDraftsKeepTheLimits(t *testing.T) {
	t.Parallel()
	s, k := known(t, dc.WithLimits(dc.DiscordLimits()))
	text := longText
	grow := func(n int) {
		for range n {
			text += "word "
			if err := k.Draft(t.Context(), draftOf(dc.DM(anna), "d1", text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(1)
	awaitDraft(t, s, k, "d1")
	for n := 1; n <= 4; n++ { // all that the limit leaves to drafts
		until(t, s, "an edit", func() bool {
			grow(1)
			return s.Messages(dc.DM(anna))[0].Edits >= n
		})
	}
	grow(50)
	m := send(dc.DM(anna), "The end.")
	m.DraftID = "d1"
	k.Send(m).MustAck(t)
	if all := s.Messages(dc.DM(anna)); len(all) != 1 || all[0].Text != "The end." {
		t.Errorf("messages %+v", all)
	}
	if refused := s.Refused(); len(refused) != 0 {
		t.Errorf("refused %+v", refused)
	}
}

// A draft whose id was lost is found by its nonce.
func TestDraftWithoutAnIDIsFound(t *testing.T) {
	t.Parallel()
	s, k := known(t)
	s.Fail("createMessage", 1, dc.Fault{Break: dc.BreakAfter})
	if err := k.Draft(t.Context(), draftOf(dc.DM(anna), "d1", longText)); err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, s, dc.DM(anna), 1)
	m := send(dc.DM(anna), "The end.")
	m.DraftID = "d1"
	k.Send(m).MustAck(t)
	if all := s.Messages(dc.DM(anna)); len(all) != 1 || all[0].Text != "The end." {
		t.Errorf("messages %+v", all)
	}
}

func TestDraftIsRemoved(t *testing.T) {
	t.Parallel()
	s, k := known(t)
	if err := k.Draft(t.Context(), draftOf(dc.DM(anna), "d1", longText)); err != nil {
		t.Fatal(err)
	}
	awaitDraft(t, s, k, "d1")
	k.Send(contract.ChannelSend{Conversation: dc.DM(anna), DraftID: "d1", Kind: contract.SendReply}).MustAck(t)
	if all := s.Messages(dc.DM(anna)); len(all) != 0 || len(s.Deleted(dc.DM(anna))) != 1 {
		t.Errorf("messages %+v", all)
	}
}

// What Discord would refuse is never sent: texts at the limits, tables, buttons.
func TestLimitsOfAMessage(t *testing.T) {
	t.Parallel()
	s, k := known(t)
	wide := "| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", 198)
	m := send(dc.DM(anna), wide)
	for i := range contract.MaxActions {
		m.Actions = append(m.Actions, contract.Action{Label: strings.Repeat("ж", 90), Command: fmt.Sprintf("/x %060d", i)})
	}
	k.Send(m).MustAck(t)
	k.Send(send(dc.DM(anna), strings.Repeat("😀", 1000))).MustAck(t)
	if refused := s.Refused(); len(refused) != 0 {
		t.Errorf("refused %+v", refused)
	}
	if got := awaitMessage(t, s, dc.DM(anna), 1); len(got.Buttons) != contract.MaxActions {
		t.Errorf("%d buttons", len(got.Buttons))
	}
}
