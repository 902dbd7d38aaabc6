package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// script is the model of the main job. To a message it answers, in this order:
// call a tool with an effect and set a reminder; send to the second channel;
// reply. It keeps no state of a turn: what it says next follows from what it is
// told, as with a real model.
type script struct {
	mu       sync.Mutex
	jobs     map[string]job // by token
	told     map[string]string
	dues     map[string]time.Time
	twice    map[string]bool    // what it has read twice in one request
	onAnswer func(token string) // before a reply is given to the kernel
}

// job is what the model does about one message.
type job struct {
	delay int // seconds to the reminder; 0: no reminder
	reply reply
}

// reply is how a reply comes.
type reply int

const (
	atOnce   reply = iota
	slowly         // piece by piece: it is shown while it is written
	atLength       // too long for one message of the platform
)

// every kind of reply comes in a crowd, most of them at once.
func replyOf(n int) reply {
	switch n % 10 {
	case 3:
		return slowly
	case 7:
		return atLength
	default:
		return atOnce
	}
}

func newScript() *script {
	return &script{jobs: map[string]job{}, told: map[string]string{}, dues: map[string]time.Time{}, twice: map[string]bool{}}
}

// want says what the model does about a message.
func (s *script) want(token string, j job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[token] = j
}

func (s *script) onReply(f func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onAnswer = f
}

// outcome is what the model was told of the tool with an effect.
func (s *script) outcome(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[token]
}

// knows reports whether there is such a message.
func (s *script) knows(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.jobs[token]
	return ok
}

// reply is what the model says in the end.
func (s *script) reply(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return replyTo(token, s.jobs[token].reply)
}

func replyTo(token string, kind reply) string {
	var text strings.Builder
	text.WriteString("You said " + token)
	lines := map[reply]int{slowly: 4, atLength: 100}[kind]
	for n := range lines {
		fmt.Fprintf(&text, "\n\nThere is more to be said of it, which is the line %d about %s", n+1, token)
	}
	return text.String()
}

func newsOf(token string) string { return "News of " + token }

// due is when the reminder was to come, at the earliest.
func (s *script) due(token string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dues[token]
}

// repeats is what stood twice in one request: a message that was taken down
// twice, or a reply.
func (s *script) repeats() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for text := range s.twice {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

var written = regexp.MustCompile(`^(?:\[.*\] )?message (<\w+>)`)

func (s *script) answer(r openaitest.Request) openaitest.Answer {
	token, called, results := "", map[string]string{}, map[string]string{}
	read, twice := map[string]bool{}, []string{}
	once := func(what string) {
		if read[what] {
			twice = append(twice, what)
		}
		read[what] = true
	}
	for _, m := range r.Messages {
		switch found := written.FindStringSubmatch(m.Content.Text); {
		case m.Role == "user" && found != nil:
			token = found[1]
			once("message " + token)
			clear(called)
			clear(results)
		case m.Role == "assistant":
			for _, c := range m.ToolCalls {
				called[c.ID] = c.Function.Name
			}
			if strings.HasPrefix(m.Content.Text, "You said ") {
				once("reply to " + tokenIn(m.Content.Text))
			}
		case m.Role == "tool":
			results[called[m.ToolCallID]] = m.Content.Text
		}
	}
	s.mu.Lock()
	j, f := s.jobs[token], s.onAnswer
	for _, what := range twice {
		s.twice[what] = true
	}
	if result := results["shop__act"]; result != "" {
		s.told[token] = result
	}
	remind := j.delay > 0 && results["scheduler__schedule_once"] == ""
	if remind && s.dues[token].IsZero() {
		s.dues[token] = time.Now().Add(time.Duration(j.delay) * time.Second)
	}
	s.mu.Unlock()
	if token == "" {
		return openaitest.Say("Nothing was asked.")
	}
	var calls []openaitest.Call
	if results["shop__act"] == "" {
		calls = append(calls, openaitest.NewCall("shop__act", map[string]string{"n": token}))
	}
	if remind {
		calls = append(calls, openaitest.NewCall("scheduler__schedule_once", map[string]any{"message": "Reminder " + token, "delay_seconds": j.delay}))
	}
	if len(calls) == 0 && results["send_to_channel"] == "" {
		calls = append(calls, openaitest.NewCall("send_to_channel", map[string]string{"channel_id": "shop", "text": newsOf(token)}))
	}
	if len(calls) > 0 {
		return openaitest.Answer{Calls: calls, Pieces: 1}
	}
	if f != nil {
		f(token)
	}
	answer := openaitest.Answer{Text: replyTo(token, j.reply), Pieces: 1}
	if j.reply == slowly {
		answer.Pieces, answer.Pause = 8, 200*time.Millisecond
	}
	return answer
}

// delayOf spreads reminders over a few seconds.
func delayOf(n int) int { return 1 + n%3 }

func tokenOf(batch string, n int) string {
	return "<" + strings.ReplaceAll(batch, " ", "") + "c" + strconv.Itoa(n) + ">"
}

func chatOf(n int) int64 { return int64(5000 + n) }

// moment is a random part of a time.
func moment(share float64, of time.Duration) time.Duration { return time.Duration(share * float64(of)) }
