package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

const (
	inboxMessages   = 10_000
	messagesOfOne   = 10 // of the selected sender, including its result
	messagesOfOther = 100
)

// fullInbox compares the time of `check from=` for a sender with ten messages in an otherwise
// empty inbox and in one with 10,000 others.
func fullInbox(b *bench) error {
	others, checks := b.scale(inboxMessages), b.scale(100)
	var p50 []float64
	for range min(b.rounds, 3) {
		var seen [2]time.Duration
		for i, others := range []int{0, others} {
			var err error
			if seen[i], err = b.inboxOnce(others, checks); err != nil {
				return err
			}
		}
		fmt.Printf("  in the full one: %s; with ten in all: %s\n", milliseconds(seen[1]), milliseconds(seen[0]))
		p50 = append(p50, float64(seen[1])/float64(seen[0]))
	}
	fmt.Printf("check from= a sender of %d messages, with %d others in the inbox beside none, p50: %s\n", messagesOfOne,
		others, spread(p50, times))
	return nil
}

func (b *bench) inboxOnce(others, checks int) (time.Duration, error) {
	d, err := newBed()
	if err != nil {
		return 0, err
	}
	defer d.close()
	s := &inboxScript{said: map[string]int{}}
	d.model.Handle(s.answer)
	if err := d.start(b.binary); err != nil {
		return 0, err
	}
	if err := d.warm(); err != nil {
		return 0, err
	}
	// Portions stay below the limit of turns that follow from one event.
	filling := time.Now()
	for n := 0; n < others; n += messagesOfOther * 20 {
		if err := s.fill(d, fmt.Sprintf("o%d-", n), min(20, (others-n)/messagesOfOther), messagesOfOther); err != nil {
			return 0, err
		}
	}
	if others > 0 {
		fmt.Printf("  %d messages sent in %s\n", others, time.Since(filling).Round(time.Millisecond))
	}
	for i := range checks {
		if err := s.fill(d, fmt.Sprintf("p%d-", i), 1, messagesOfOne); err != nil {
			return 0, err
		}
		if err := s.check(d, fmt.Sprintf("p%d-0", i)); err != nil {
			return 0, err
		}
	}
	if err := lying(d, others); err != nil {
		return 0, err
	}
	return median(s.times), nil
}

// inboxScript is the model of main, which checks, and of tasks, which send.
type inboxScript struct {
	mu       sync.Mutex
	said     map[string]int // by task, how often
	name     string         // of the tasks that main pushes next
	tasks    int
	messages int // of each task; its result is the last one

	sender string // selected by main
	called time.Time
	times  []time.Duration
	got    int // messages in the newest answer
}

const (
	fillWord  = "have them write"
	checkWord = "check"
)

func (s *inboxScript) answer(r openaitest.Request) openaitest.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	said, results := heard(r), r.Results()
	switch {
	case strings.HasPrefix(said, "[task from "):
		return s.task(said)
	case said == fillWord && len(results) == 0:
		a := openaitest.Answer{}
		for i := range s.tasks {
			name := fmt.Sprint(s.name, i)
			a.Calls = append(a.Calls, openaitest.NewCall("tasks__push",
				map[string]string{"name": name, "prompt": "I am " + name + "."}))
		}
		return a
	case said == fillWord && len(results) == s.tasks && !strings.Contains(results[0], "started"):
		return openaitest.CallTool("tasks__run", map[string]int{"count": tasksAtOnce})
	case said == checkWord && len(results) == 0:
		s.called = time.Now()
		return openaitest.CallTool("tasks__check", map[string]string{"from": s.sender})
	case said == checkWord:
		s.times = append(s.times, time.Since(s.called))
		var found struct{ Messages []json.RawMessage }
		_ = json.Unmarshal([]byte(results[0]), &found)
		s.got = len(found.Messages)
	}
	return openaitest.Answer{Text: "Done.", Pieces: 1}
}

// task returns a task's next answer: the remaining calls of send, or its result.
func (s *inboxScript) task(prompt string) openaitest.Answer {
	_, name, _ := strings.Cut(prompt, "I am ")
	name, _, _ = strings.Cut(name, ".")
	a := openaitest.Answer{}
	for range min(pushesAtOnce, s.messages-1-s.said[name]) {
		s.said[name]++
		a.Calls = append(a.Calls, openaitest.NewCall("tasks__send",
			map[string]string{"to": "main", "message": fmt.Sprintf("Message %d.", s.said[name])}))
	}
	if len(a.Calls) == 0 {
		a.Text, a.Pieces = "Done.", 1
	}
	return a
}

// fill has tasks write messages, and waits until all are in the inbox and main has its
// notice.
func (s *inboxScript) fill(d *bed, name string, tasks, messages int) error {
	inbox, err := d.inboxes()
	if err != nil {
		return err
	}
	defer inbox.close()
	before, err := inbox.count()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.name, s.tasks, s.messages = name, tasks, messages
	s.mu.Unlock()
	d.say(1, fillWord)
	if err := until("the messages did not come", func() bool {
		n, err := inbox.count()
		return err == nil && n == before+tasks*messages
	}); err != nil {
		return err
	}
	return d.quiet()
}

// lying checks the number of messages left.
func lying(d *bed, want int) error {
	inbox, err := d.inboxes()
	if err != nil {
		return err
	}
	defer inbox.close()
	n, err := inbox.count()
	if err == nil && n != want {
		err = fmt.Errorf("%d messages lie in the inbox at the end, not %d", n, want)
	}
	return err
}

// check has main check for a sender.
func (s *inboxScript) check(d *bed, sender string) error {
	s.mu.Lock()
	s.sender = sender
	s.mu.Unlock()
	d.say(1, checkWord)
	if _, err := d.reply(context.Background()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got != messagesOfOne {
		return fmt.Errorf("the check of %s found %d messages, not %d", sender, s.got, messagesOfOne)
	}
	return nil
}
