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

// script is the model of the main job. It answers a message in steps: call a tool with an
// effect and set a reminder; send to the second channel; reply. Like a real model it keeps
// no state: the request determines the next step.
type script struct {
	mu       sync.Mutex
	jobs     map[string]job // by token
	told     map[string]string
	dues     map[string]time.Time
	twice    map[string]bool    // texts repeated in one request
	onAnswer func(token string) // called before a reply
}

// job configures the model's steps for one message.
type job struct {
	delay int // seconds to the reminder; 0: no reminder
	reply reply
}

// reply is the form of a reply.
type reply int

const (
	atOnce   reply = iota
	slowly         // in pieces, shown while it is written
	atLength       // too long for one platform message
)

// A crowd has replies of every form, most of them plain.
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
	return &script{jobs: map[string]job{}, told: map[string]string{}, dues: map[string]time.Time{},
		twice: map[string]bool{}}
}

// want configures the job of a message.
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

// outcome is the tool result in the model's request.
func (s *script) outcome(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[token]
}

// knows reports whether the token belongs to a message.
func (s *script) knows(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.jobs[token]
	return ok
}

// reply returns the final text of the model.
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

// due returns the earliest time of the reminder.
func (s *script) due(token string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dues[token]
}

// repeats returns messages and replies that were repeated in one request.
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
		calls = append(calls, openaitest.NewCall("scheduler__schedule_once",
			map[string]any{"message": "Reminder " + token, "delay_seconds": j.delay}))
	}
	if len(calls) == 0 && results["send_to_channel"] == "" {
		calls = append(calls, openaitest.NewCall("send_to_channel",
			map[string]string{"channel_id": "shop", "text": newsOf(token)}))
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

// moment returns a random part of a duration.
func moment(share float64, of time.Duration) time.Duration { return time.Duration(share * float64(of)) }
