package telegramchannel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	tg "github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

func TestSend(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	s.AddChat(tg.Chat{ID: 7})
	s.AddChat(tg.Chat{ID: -1_000_000_000_002, Forum: true}, 44)
	asked := s.Inject(tg.Incoming{Chat: tg.Chat{ID: -5, Type: tg.Group}, Text: "?"}).Message
	private := s.Say(8, "?").Message
	for name, tc := range map[string]struct {
		m                          sdk.Message
		chat                       int64
		text, thread, conversation string
		entities, replyTo          int
	}{
		"plain":     {text(7, "hello"), 7, "hello", "", "7", 0, 0},
		"formatted": {text(7, "a **b**\n\n```go\nx\n```"), 7, "a b\n\nx", "", "7", 2, 0},
		"topic": {sdk.Message{Text: "x", Conversation: "-1000000000002", Thread: "44"}, -1_000_000_000_002,
			"x", "44", "-1000000000002", 0, 0},
		"to the owner": {sdk.Message{Text: "hi owner", Owner: "7"}, 7, "hi owner", "", "7", 0, 0},
		"group, quoting": {sdk.Message{Text: "y", Conversation: "-5", ReplyTo: fmt.Sprint(asked)}, -5, "y", "", "-5",
			0, asked},
		"second part": {sdk.Message{Text: "z", Conversation: "-5", ReplyTo: fmt.Sprint(asked), Part: 2, Parts: 2},
			-5, "z", "", "-5", 0, 0},
		"reply to what is gone": {sdk.Message{Text: "w", Conversation: "-5", ReplyTo: "-5/9999"}, -5, "w", "", "-5", 0, 0},
		"private, no quote": {sdk.Message{Text: "v", Conversation: "8", ReplyTo: fmt.Sprint(private)}, 8, "v", "", "8",
			0, 0},
		"only markup": {text(7, "```\n```"), 7, "```\n```", "", "7", 0, 0},
		"long when formatted": {text(7,
			strings.Repeat("- a\n", 1000)+"| a | b |\n|--|--|\n| "+strings.Repeat("x", 40)+" | c |"), 7, "", "", "7", -1, 0},
	} {
		before := len(s.Messages(tc.chat))
		r, err := c.Send(t.Context(), tc.m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all := s.Messages(tc.chat)
		if len(all) != before+1 {
			t.Fatalf("%s: %d messages in the chat, want one more than %d", name, len(all), before)
		}
		got := all[before]
		if r.ProviderID != fmt.Sprintf("%d/%d", tc.chat, got.ID) || r.Conversation != tc.conversation ||
			r.Thread != tc.thread {
			t.Errorf("%s: receipt %+v for message %d", name, r, got.ID)
		}
		if tc.text != "" && got.Text != tc.text || tc.entities >= 0 && len(got.Entities) != tc.entities ||
			got.ReplyTo != tc.replyTo {
			t.Errorf("%s: sent %+v", name, got)
		}
		if fmt.Sprint(got.Thread) != "0" && fmt.Sprint(got.Thread) != tc.thread {
			t.Errorf("%s: in topic %d", name, got.Thread)
		}
	}
}

// Each answer to a send gives the kernel the right outcome.
func TestSendOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		arrange func(*tg.Server)
		m       sdk.Message
		kind    busv1.Outcome_Kind
		reason  string
		after   time.Duration
		sent    int // messages in the chat, in the end
	}{
		"unknown chat": {nil, text(99, "x"), busv1.Outcome_KIND_DROP, "must write to the bot first", 0, 0},
		"blocked":      {func(s *tg.Server) { s.Block(7) }, text(7, "x"), busv1.Outcome_KIND_DROP, "unblock", 0, 0},
		"no owner":     {nil, sdk.Message{Text: "x"}, busv1.Outcome_KIND_DROP, "pairing approve", 0, 0},
		"no address": {nil, sdk.Message{Text: "x", Conversation: "bob"}, busv1.Outcome_KIND_DROP, "not a Telegram chat id", 0,
			0},
		"unknown topic": {nil, sdk.Message{Text: "**x**", Conversation: "7", Thread: "5"}, busv1.Outcome_KIND_DROP,
			"message thread not found", 0, 0},
		"empty": {nil, text(7, " "), busv1.Outcome_KIND_DROP, "message text is empty", 0, 0},
		"server error": {func(s *tg.Server) { s.FailStatus("sendMessage", 1, 500) }, text(7, "x"),
			busv1.Outcome_KIND_RETRY, "500", serverRetry, 0},
		"proxy's page": {func(s *tg.Server) { s.Fail("sendMessage", 1, tg.Fault{Status: 502, Body: "<html>"}) },
			text(7, "x"), busv1.Outcome_KIND_RETRY, "502", serverRetry, 0},
		"gateway timeout": {func(s *tg.Server) { s.FailStatus("sendMessage", 1, 504) }, text(7, "x"),
			busv1.Outcome_KIND_UNKNOWN, "504", 0, 0},
		"down": {func(s *tg.Server) { s.Down() }, text(7, "x"), busv1.Outcome_KIND_RETRY, "no connection",
			serverRetry, 0},
		"other code": {func(s *tg.Server) { s.FailStatus("sendMessage", 1, 418) }, text(7, "x"),
			busv1.Outcome_KIND_DROP, "refused the message", 0, 0},
		"reset before": {func(s *tg.Server) { s.Fail("sendMessage", 1, tg.Fault{Break: tg.BreakBefore}) }, text(7, "x"),
			busv1.Outcome_KIND_UNKNOWN, "unknown whether", 0, 0},
		"reset after": {func(s *tg.Server) { s.Fail("sendMessage", 1, tg.Fault{Break: tg.BreakAfter}) }, text(7, "x"),
			busv1.Outcome_KIND_UNKNOWN, "unknown whether", 0, 1},
		"half an answer": {func(s *tg.Server) { s.Fail("sendMessage", 1, tg.Fault{Break: tg.BreakInsideAnswer}) },
			text(7, "x"), busv1.Outcome_KIND_UNKNOWN, "unknown whether", 0, 1},
		"slow down": {func(s *tg.Server) { s.Fail("sendMessage", 1, tg.Fault{Status: 429, RetryAfter: 300}) },
			text(7, "x"), busv1.Outcome_KIND_RETRY, "waiting 5 min", 5 * time.Minute, 0},
		"token revoked": {func(s *tg.Server) { s.Revoke("100001:AAother") }, text(7, "x"), busv1.Outcome_KIND_RETRY,
			"BotFather", tokenRetry, 0},
		"refused format": {func(s *tg.Server) {
			s.Fail("sendMessage", 1, tg.Fault{Status: 400, Description: "Bad Request: can't parse entities: x"})
		}, text(7, "**x**"), busv1.Outcome_KIND_ACK, "", 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tg.Start(t)
			k := sdktest.Start(t, New(), sdktest.Options{
				Manifest: manifest, Config: Config{APIURL: s.URL()}, Secrets: map[string]string{TokenName: s.Token()},
			})
			k.AwaitReadiness(sdk.Ready)
			s.AddChat(tg.Chat{ID: 7})
			if tc.arrange != nil {
				tc.arrange(s)
			}
			var o sdktest.Outcome
			switch name { // the kernel sends nothing once the channel has said so
			case "down":
				k.WaitFor("the channel is not ready", func() bool { return k.Readiness().GetState() != sdk.Ready })
				fallthrough
			case "token revoked":
				o = k.Hand(contract.TopicChannelSend+ID, sendOf(tc.m))
			default:
				o = k.Send(sendOf(tc.m))
			}
			if o.Kind != tc.kind || !strings.Contains(o.Reason, tc.reason) || o.RetryAfter != tc.after {
				t.Errorf("outcome %s, want %s after %s with %q", o, tc.kind, tc.after, tc.reason)
			}
			if strings.Contains(o.Reason, s.Token()) {
				t.Errorf("the reason holds the token: %s", o.Reason)
			}
			if got := s.Messages(7); len(got) != tc.sent {
				t.Errorf("messages in the chat: %+v", got)
			}
			if name == "refused format" {
				if got := s.Messages(7); got[0].Text != "**x**" || len(got[0].Entities) != 0 {
					t.Errorf("sent %+v, want the source", got[0])
				}
			}
		})
	}
}

// Nothing that answers within the deadline: it may have been sent.
func TestSendThatHangs(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	s.AddChat(tg.Chat{ID: 7})
	s.Fail("sendMessage", 1, tg.Fault{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = s.WaitRefused(ctx, 1)
		cancel()
	}()
	_, err := c.Send(ctx, text(7, "x"))
	if err == nil || !strings.Contains(err.Error(), "unknown whether") {
		t.Errorf("a send that was given up: %v", err)
	}
}

func sendOf(m sdk.Message) contract.ChannelSend {
	return contract.ChannelSend{
		Text: m.Text, Conversation: m.Conversation, Thread: m.Thread, Owner: m.Owner, ReplyTo: m.ReplyTo,
		Part: m.Part, Parts: m.Parts, Kind: contract.SendReply,
	}
}

func TestMigratedGroup(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	s.Migrate(-5, -1_000_000_000_005)
	r, err := c.Send(t.Context(), text(-5, "x"))
	if err != nil || r.Conversation != "-1000000000005" || len(s.Messages(-1_000_000_000_005)) != 1 {
		t.Errorf("receipt %+v, %v", r, err)
	}
}

// A chat that Telegram slows down, and one that does not answer, hold no other.
func TestChatsDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	for chat := range int64(64) {
		s.AddChat(tg.Chat{ID: 100 + chat})
	}
	s.Fail("sendMessage", 1, tg.Fault{Chat: 100, Status: 429, RetryAfter: 600})
	s.Fail("sendMessage", 1, tg.Fault{Chat: 101, Hang: true})
	if _, err := c.Send(t.Context(), text(100, "x")); err == nil {
		t.Fatal("the limited chat was sent to")
	}
	var hung sync.WaitGroup
	hung.Go(func() {
		if _, err := c.Send(t.Context(), text(101, "x")); err == nil {
			t.Error("the hanging chat was sent to")
		}
	})
	if _, err := s.WaitRefused(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	calls := s.Calls("sendMessage")
	if _, err := c.Send(t.Context(), text(100, "x")); err == nil || s.Calls("sendMessage") != calls {
		t.Errorf("the limited chat was tried again before its time: %v", err)
	}
	var wg sync.WaitGroup
	for chat := int64(102); chat < 164; chat++ {
		wg.Go(func() {
			for range 3 {
				if _, err := c.Send(t.Context(), text(chat, "x")); err != nil {
					t.Errorf("chat %d: %v", chat, err)
				}
			}
		})
	}
	wg.Wait()
	s.Release()
	hung.Wait()
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	c, s, _ := running(t)
	round := func() {
		var wg sync.WaitGroup
		for chat := range int64(64) {
			s.AddChat(tg.Chat{ID: 100 + chat})
			wg.Go(func() {
				for range 10 {
					if _, err := c.Send(t.Context(), text(100+chat, "x")); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	round()
	// 64 sends, the poll and the menu at the same time; dialing races may add a few.
	if n := s.Connections(); n > 140 {
		t.Errorf("%d connections for 64 chats", n)
	}
	if s.Accepted() != 640 {
		t.Errorf("%d messages arrived", s.Accepted())
	}
}

// passes has a send enter that takes no time.
func passes(t *testing.T, p *pacer, chat int64) error {
	t.Helper()
	leave, err := p.enter(t.Context(), chat)
	if err == nil {
		leave()
	}
	return err
}

// A burst, then one a second, chat by chat.
func TestPacer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		begin := time.Now()
		for i, want := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second} {
			if err := passes(t, p, 7); err != nil || time.Since(begin) != want {
				t.Errorf("message %d: %v after %s, want %s", i+1, err, time.Since(begin), want)
			}
		}
		begin = time.Now()
		if err := passes(t, p, 8); err != nil || time.Since(begin) != 0 {
			t.Errorf("another chat: %v after %s", err, time.Since(begin))
		}
	})
}

// Telegram allows 20 messages a minute to a group, whichever minute.
func TestPacerOfGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		begin := time.Now()
		passed := 0
		for time.Since(begin) < time.Minute {
			if passes(t, p, -7) == nil {
				passed++
			} else {
				time.Sleep(100 * time.Millisecond)
			}
		}
		if passed < 15 || passed > 20 {
			t.Errorf("%d messages in the first minute", passed)
		}
	})
}

// Many at once for one chat: those that would wait long come again later, and
// take nothing from the rate of the whole bot.
func TestPacerUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(true)
		var passed, later atomic.Int32
		enter := func(chat int64) {
			if passes(t, p, chat) == nil {
				passed.Add(1)
			} else {
				later.Add(1)
			}
		}
		for range 100 {
			go enter(7)
		}
		time.Sleep(time.Minute)
		if passed.Load() != 5 || later.Load() != 95 {
			t.Errorf("one chat: %d passed and %d come later, want 5 and 95", passed.Load(), later.Load())
		}
		passed.Store(0)
		begin := time.Now()
		for chat := range int64(60) {
			go enter(100 + chat)
		}
		synctest.Wait()
		if passed.Load() != 30 {
			t.Errorf("60 chats: %d passed at once, want 30", passed.Load())
		}
		time.Sleep(2 * time.Second)
		if passed.Load() != 60 {
			t.Errorf("60 chats: %d passed in %s", passed.Load(), time.Since(begin))
		}
	})
}

func TestPacerForgetsChats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(false)
		p.block(1, time.Hour)
		for chat := range int64(3 * maxChats) {
			p.block(10+chat, time.Millisecond)
			time.Sleep(2 * time.Millisecond)
		}
		if len(p.chats) > maxChats || p.chats[1] == nil {
			t.Errorf("%d chats are remembered, the closed one: %v", len(p.chats), p.chats[1])
		}
	})
}

func TestPacerDisabledStillObeysTelegram(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(false)
		begin := time.Now()
		for range 1000 {
			if err := passes(t, p, 7); err != nil {
				t.Fatal(err)
			}
		}
		p.block(7, time.Second)
		if err := passes(t, p, 7); err != nil || time.Since(begin) != time.Second {
			t.Errorf("a short pause: %v after %s", err, time.Since(begin))
		}
		p.block(7, time.Minute)
		if err := passes(t, p, 7); err == nil {
			t.Error("a long pause is waited for")
		}
		if err := passes(t, p, 8); err != nil || time.Since(begin) != time.Second {
			t.Errorf("another chat: %v after %s", err, time.Since(begin))
		}
	})
}

func TestClassifyUnknownErrors(t *testing.T) {
	t.Parallel()
	if kind, _ := classify(errors.New("something else")); kind != unknown {
		t.Errorf("an error of no known kind is %d; only unknown is safe", kind)
	}
}
