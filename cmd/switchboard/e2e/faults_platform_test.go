package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// TestFaultsOfTelegramLoseNothing has each request that a message and its reply
// need go wrong in each way in which requests do. What Telegram may have taken
// comes again with a mark, everything else comes once.
func TestFaultsOfTelegramLoseNothing(t *testing.T) {
	t.Parallel()
	page := "<html>" + strings.Repeat("x", 10<<20) + "</html>"
	for _, method := range []string{"getUpdates", "sendMessage"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withTelegram(), withModel)
			w.model.Handle(echo)
			w.start()
			w.telegramReady()
			for i, tt := range []struct {
				name    string
				fault   telegramtest.Fault
				unknown bool // whether the request had its effect
			}{
				{name: "429 with retry_after", fault: telegramtest.Fault{Status: 429, RetryAfter: 1}},
				{name: "429 without", fault: telegramtest.Fault{Status: 429}},
				{name: "500", fault: telegramtest.Fault{Status: 500}},
				{name: "502 with a page", fault: telegramtest.Fault{Status: 502, Body: "<html>Bad Gateway</html>"}},
				{name: "504", fault: telegramtest.Fault{Status: 504}, unknown: true},
				{name: "hang", fault: telegramtest.Fault{Hang: true}, unknown: true},
				{name: "reset before", fault: telegramtest.Fault{Break: telegramtest.BreakBefore}, unknown: true},
				{name: "reset after", fault: telegramtest.Fault{Break: telegramtest.BreakAfter}, unknown: true},
				{name: "reset inside the answer", fault: telegramtest.Fault{Break: telegramtest.BreakInsideAnswer}, unknown: true},
				{name: "a page of 10 MB", fault: telegramtest.Fault{Status: 502, Body: page}},
				{name: "invalid UTF-8", fault: telegramtest.Fault{Status: 502, Body: "\xff\xfe<html>"}},
				{name: "half an answer that claims to be whole", fault: telegramtest.Fault{Status: 200,
					Body: `{"ok": true, "result": [{"upda`}, unknown: true},
			} {
				before := len(w.texts(anna))
				w.telegram.Fail(method, 1, tt.fault)
				want := fmt.Sprintf("<m%d>", i)
				w.telegram.Say(anna, want)
				if tt.fault.Hang {
					if err := w.telegram.Wait(w.ctx(), "a request that hangs", w.hangs); err != nil {
						t.Fatal(err)
					}
					w.telegram.Release()
				}
				w.eventually(tt.name+": the reply", func() bool {
					return strings.Contains(strings.Join(w.texts(anna), "\n"), want)
				})
				w.settled()
				plain, marked := 0, 0
				for _, text := range w.texts(anna)[before:] {
					switch text {
					case "You said " + want:
						plain++
					case contract.RepeatMark + "You said " + want:
						marked++
					default:
						t.Errorf("%s: Telegram has %q", tt.name, text)
					}
				}
				if plain > 1 || marked > 1 || marked > 0 && (!tt.unknown || method != "sendMessage") {
					t.Errorf("%s: the reply came %d times, and %d times with a mark", tt.name, plain, marked)
				}
			}
			if dead := w.dead(); len(dead) > 0 {
				t.Errorf("dead letters: %q", dead)
			}
		})
	}
}

// hangs reports whether a request to Telegram hangs, or has done so.
func (w *world) hangs() bool {
	return slices.ContainsFunc(w.telegram.Refused(), func(r telegramtest.Refusal) bool { return r.Description == "hung" })
}

// rawMessage is an update as no Telegram should send it.
func rawMessage(id int, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"message_id":%d,"date":1,"chat":{"id":%d,"type":"private"},"from":{"id":%d,"first_name":"Anna"},"text":%s}`, id, anna, anna, text))
}

// TestUpdatesAsTheyShouldNotBe has updates come that are too long, not UTF-8,
// out of order, twice, or nothing at all. Each that can be read is answered
// once, and none stops later ones.
func TestUpdatesAsTheyShouldNotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.model.Handle(echo)
	w.start()
	w.telegramReady()
	from := telegramtest.User{ID: anna, FirstName: "Anna"}
	n := 0
	for _, tt := range []struct {
		name   string
		inject func()
		told   []string
	}{
		{"10 MB", func() {
			w.telegram.InjectRaw(1, "message", rawMessage(901, `"<long> `+strings.Repeat("long ", 2<<20)+`"`))
		}, []string{"You said <long>"}},
		{"not UTF-8", func() { w.telegram.InjectRaw(2, "message", rawMessage(902, "\"<bytes> \xff\xfe\xc3( \"")) },
			[]string{"You said <bytes>"}},
		{"half a character", func() { w.telegram.InjectRaw(3, "message", rawMessage(903, `"<half> \ud83d and \u0000"`)) },
			[]string{"You said <half>"}},
		{"no message", func() { w.telegram.InjectRaw(4, "message", json.RawMessage(`[[[[]]]]`)) }, nil},
		{"numbers out of range", func() {
			w.telegram.InjectRaw(5, "message",
				json.RawMessage(`{"message_id":1e300,"chat":{"id":"x"}}`))
		}, nil},
		{"out of order", func() {
			w.telegram.InjectBatch(true, telegramtest.Incoming{From: from, Text: "<first>"},
				telegramtest.Incoming{From: from, Text: "<second>"})
		}, []string{"<second>", "<first>"}},
		{"twice", func() { w.telegram.InjectTwice(telegramtest.Incoming{From: from, Text: "<twice>"}) },
			[]string{"You said <twice>"}},
	} {
		before := len(w.texts(anna))
		tt.inject()
		n++
		w.telegram.Say(boris, fmt.Sprintf("<after%d>", n))
		w.told(boris, n)
		w.eventually(tt.name+": the replies", func() bool {
			text := strings.Join(w.texts(anna)[before:], "\n")
			for _, part := range tt.told {
				if !strings.Contains(text, part) {
					return false
				}
			}
			return true
		})
		w.settled()
		for _, part := range tt.told {
			if c := strings.Count(strings.Join(w.texts(anna)[before:], "\n"), part); c != 1 {
				t.Errorf("%s: %q came %d times in %q", tt.name, part, c, w.texts(anna)[before:])
			}
		}
		if len(tt.told) == 0 && len(w.texts(anna)) != before {
			t.Errorf("%s: somebody is told %q", tt.name, w.texts(anna)[before:])
		}
	}
}

// TestAnswersOfAModelAsTheyShouldNotBe has answers come that are too long or not
// UTF-8. They are shown, or it is said what is wrong with them.
func TestAnswersOfAModelAsTheyShouldNotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(), withModel)
	w.config(fmt.Sprintf("channels: {telegram_channel: {allow_from: ['%d']}}\nextensions: {openai: {config: {retries: "+
		"0}}}", anna))
	w.start()
	w.telegramReady()
	chunk := func(text string) string {
		return `data: {"id":"x","object":"chat.completion.chunk","model":"test-model","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
	}
	const end = `data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for i, tt := range []struct {
		name   string
		answer openaitest.Answer
		told   []string
	}{
		{"10 MB of text", openaitest.Answer{Body: strings.Repeat(chunk(strings.Repeat("x", 1<<20)), 10) + end},
			[]string{"The answer was cut off here"}},
		{"10 MB in one line", openaitest.Answer{Body: chunk(strings.Repeat("x", 10<<20)) + end}, []string{"Sorry"}},
		{"10 MB without an end of line", openaitest.Answer{Body: "data: " + strings.Repeat("x", 10<<20)}, []string{"Sorry"}},
		{"an error of 10 MB", openaitest.Answer{Status: http.StatusBadRequest,
			Message: "too strange " + strings.Repeat("x", 10<<20)}, []string{"Sorry", "too strange"}},
		{"not UTF-8", openaitest.Answer{Body: chunk("well \xff\xfe\xc3( then") + end}, []string{"well", "then"}},
		{"an error that is not UTF-8", openaitest.Answer{Status: http.StatusBadRequest, Message: "too strange \xff\xfe"},
			[]string{"Sorry", "too strange"}},
		{"half a character", openaitest.Answer{Body: chunk(`well \ud83d then`) + end}, []string{"well", "then"}},
		{"cut inside a character", openaitest.Answer{Body: chunk("gr\xc3") + chunk("\xbcn") + end}, []string{"gr", "n"}},
		{"a call with arguments that are not UTF-8", openaitest.CallTool("list_channels", "{\"x\": \"\xff\"}"),
			[]string{"went on"}},
	} {
		asked := fmt.Sprintf("<m%d>", i)
		w.model.Handle(func(r openaitest.Request) openaitest.Answer {
			if !strings.Contains(r.Last("user"), asked) || len(r.Results()) > 0 {
				return openaitest.Say("and went on") // also a summary
			}
			return tt.answer
		})
		before := len(w.texts(anna))
		w.telegram.Say(anna, "/new")
		w.told(anna, before+1)
		w.telegram.Say(anna, asked)
		w.told(anna, before+2)
		w.settled()
		text := strings.Join(w.texts(anna)[before+1:], "")
		if !utf8.ValidString(text) || len(text) > 140_000 {
			t.Errorf("%s: Telegram has %d bytes", tt.name, len(text))
		}
		contains(t, tt.name, text[max(0, len(text)-1000):], tt.told...)
	}
	w.model.Handle(echo)
	w.telegram.Say(anna, "<end>")
	w.eventually("an ordinary answer", func() bool { return strings.Contains(strings.Join(w.texts(anna), "\n"), "<end>") })
}
