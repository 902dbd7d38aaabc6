package ledger

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

// Script is the model of the main job. It answers a message in steps: call a tool with an
// effect and set a reminder; send to the second channel; reply. Like a real model it keeps
// no state: the request determines the next step.
type Script struct {
	mu       sync.Mutex
	jobs     map[string]Job // by token
	told     map[string]string
	dues     map[string]time.Time
	twice    map[string]bool    // texts repeated in one request
	onAnswer func(token string) // called before a reply
}

// Job configures the model's steps for one message.
type Job struct {
	Delay int // seconds to the reminder; 0: no reminder
	Reply Reply
}

// Reply is the form of a reply.
type Reply int

// The forms of replies.
const (
	AtOnce   Reply = iota // short
	Slowly                // in pieces, shown while it is written
	AtLength              // too long for one message of the platform
	ForLong               // as Slowly, for five seconds
)

// ReplyOf gives a crowd replies of every form, most of them plain.
func ReplyOf(n int) Reply {
	switch n % 10 {
	case 3:
		return Slowly
	case 7:
		return AtLength
	default:
		return AtOnce
	}
}

// NewScript makes a model without jobs.
func NewScript() *Script {
	return &Script{jobs: map[string]Job{}, told: map[string]string{}, dues: map[string]time.Time{},
		twice: map[string]bool{}}
}

// Want configures the job of a message.
func (s *Script) Want(token string, j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[token] = j
}

// OnReply sets a function that is called before each reply.
func (s *Script) OnReply(f func(string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onAnswer = f
}

// outcome is the tool result in the model's request.
func (s *Script) outcome(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[token]
}

// knows reports whether the token belongs to a message.
func (s *Script) knows(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.jobs[token]
	return ok
}

// reply returns the final text of the model.
func (s *Script) reply(token string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return replyTo(token, s.jobs[token].Reply)
}

func replyTo(token string, kind Reply) string {
	var text strings.Builder
	text.WriteString("You said " + token)
	lines := map[Reply]int{Slowly: 4, ForLong: 4, AtLength: 100}[kind]
	for n := range lines {
		fmt.Fprintf(&text, "\n\nThere is more to be said of it, which is the line %d about %s", n+1, token)
	}
	return text.String()
}

func newsOf(token string) string { return "News of " + token }

// due returns the earliest time of the reminder.
func (s *Script) due(token string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dues[token]
}

// repeats returns messages and replies that were repeated in one request.
func (s *Script) repeats() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for text := range s.twice {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

var written = regexp.MustCompile(`^(?:\[.*\] )?message (<\w+>)`)

// Answer is the model.
func (s *Script) Answer(r openaitest.Request) openaitest.Answer {
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
				once("reply to " + TokenIn(m.Content.Text))
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
	remind := j.Delay > 0 && results["scheduler__schedule_once"] == ""
	if remind && s.dues[token].IsZero() {
		s.dues[token] = time.Now().Add(time.Duration(j.Delay) * time.Second)
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
			map[string]any{"message": "Reminder " + token, "delay_seconds": j.Delay}))
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
	answer := openaitest.Answer{Text: replyTo(token, j.Reply), Pieces: 1}
	if pieces := map[Reply]int{Slowly: 8, ForLong: 25}[j.Reply]; pieces > 0 {
		answer.Pieces, answer.Pause = pieces, 200*time.Millisecond
	}
	return answer
}

// DelayOf spreads reminders over a few seconds.
func DelayOf(n int) int { return 1 + n%3 }

// TokenOf names a message of a batch.
func TokenOf(batch string, n int) string {
	return "<" + strings.ReplaceAll(batch, " ", "") + "c" + strconv.Itoa(n) + ">"
}

// ChatOf numbers chats.
func ChatOf(n int) int64 { return int64(5000 + n) }
