// Package ledger has the main job of Switchboard, which faults must not disturb, and counts
// from outside what people saw of it: a message is answered, a tool acts, a second channel
// hears of it, and a reminder comes. Package bench/faults uses it with one kernel,
// bench/cluster with several.
package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/switchboard-run/switchboard/contract"
)

// Message is a person's message with its expected results.
type Message struct {
	Token    string
	Chat     int64
	Reminder bool
}

// Ledger counts what became of messages, from outside: at the platform where people write,
// at the model, at the shop and in the store.
type Ledger struct {
	Platform Platform
	Model    *Script
	Patience time.Duration              // with messages whose results are missing
	Noted    func(file string) []string // lines that the shop has recorded
	Pending  func() []string            // unfinished work in the store
	Dead     func() []string            // deliveries that were given up

	settled []Message // messages that were counted
	losses  int       // losses found in them
}

// seen counts arrivals, without and with a mark.
type seen struct{ plain, marked int }

func (s *seen) add(marked bool) {
	if marked {
		s.marked++
	} else {
		s.plain++
	}
}

func (s seen) came() bool { return s.plain+s.marked > 0 }

// part is one platform message with all or part of a reply.
type part struct {
	from, to int // of the reply without white space
	seen
}

// came has the results of a message so far.
type came struct {
	reply          []part // in the order of the reply
	whole          bool   // the reply is complete
	reminder, news seen
	late           time.Duration // delay of the reminder after its time
	acts           int
}

// Results are those of messages, and unexpected texts.
type Results struct {
	of     map[string]*came
	stray  []string // texts without a message
	drafts []string // unfinished drafts
}

// Whole reports whether the reply to the message is complete.
func (l Results) Whole(m Message) bool { return l.of[m.Token].whole }

// Look reads the results of messages from the platform and from the second channel.
func (h *Ledger) Look(messages []Message) Results {
	l := Results{of: map[string]*came{}}
	chats := map[int64]bool{}
	for _, m := range messages {
		l.of[m.Token] = &came{}
		chats[m.Chat] = true
	}
	for chat := range chats {
		for _, m := range h.Platform.Messages(chat) {
			text, marked := strings.CutPrefix(m.Text, contract.RepeatMark)
			token := TokenIn(text)
			c := l.of[token]
			text = strings.TrimPrefix(text, "⏰ ") // the scheduler's mark of a reminder
			switch remind := strings.HasPrefix(text, "Reminder "); {
			case strings.HasSuffix(text, draftMark):
				l.drafts = append(l.drafts, fmt.Sprintf("chat %d: %q", chat, m.Text))
			case c != nil && remind:
				if !c.reminder.came() {
					c.late = max(0, m.At.Sub(h.Model.due(token)))
				}
				c.reminder.add(marked)
			case !remind && c != nil && c.add(text, h.Model.reply(token), marked):
			case c == nil && h.Model.knows(token): // of another batch
			default:
				l.stray = append(l.stray, fmt.Sprintf("chat %d: %q", chat, m.Text))
			}
		}
	}
	for _, line := range h.Noted("news") {
		text, marked := strings.CutPrefix(line, contract.RepeatMark)
		if c := l.of[TokenIn(text)]; c != nil && text == newsOf(TokenIn(text)) {
			c.news.add(marked)
		} else if line != "" && !h.Model.knows(TokenIn(text)) {
			l.stray = append(l.stray, fmt.Sprintf("second channel: %q", line))
		}
	}
	for _, line := range h.Noted("acts") {
		if c := l.of[line]; c != nil {
			c.acts++
		}
	}
	return l
}

// draftMark ends a text that is still being written.
const draftMark = "▍"

// add records a part of a reply, and reports whether the text is one.
func (c *came) add(text, reply string, marked bool) bool {
	text, reply = squeeze(text), squeeze(reply)
	from := strings.Index(reply, text)
	if from < 0 || text == "" {
		return false
	}
	i := slices.IndexFunc(c.reply, func(p part) bool { return p.from == from && p.to == from+len(text) })
	if i < 0 {
		i = len(c.reply)
		c.reply = append(c.reply, part{from: from, to: from + len(text)})
	}
	c.reply[i].add(marked)
	slices.SortFunc(c.reply, func(a, b part) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	to := 0
	for _, p := range c.reply {
		if p.from <= to {
			to = max(to, p.to)
		}
	}
	c.whole = to == len(reply)
	return true
}

// squeeze drops white space, because replies are split there.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// TokenIn returns the token in a text; empty: there is none.
func TokenIn(text string) string {
	from := strings.IndexByte(text, '<')
	if from < 0 {
		return ""
	}
	to := strings.IndexByte(text[from:], '>')
	if to < 0 {
		return ""
	}
	return text[from : from+to+1]
}

// Complete reports whether all results of messages have arrived.
func (h *Ledger) Complete(messages []Message) bool {
	l := h.Look(messages)
	return !slices.ContainsFunc(messages, func(m Message) bool {
		c := l.of[m.Token]
		return !c.whole || !c.news.came() || m.Reminder && !c.reminder.came()
	})
}

// Settle waits until all results have arrived and no work is pending, and counts.
func (h *Ledger) Settle(messages []Message) (Counts, []string) {
	_ = Until("everything to come", h.Patience, func() bool { return h.Complete(messages) })
	// Pending work may be a duplicate.
	stuck := []string{}
	_ = Until("nothing to be under way", h.Patience, func() bool { stuck = h.Pending(); return len(stuck) == 0 })
	c, problems := h.count(messages, stuck)
	h.settled, h.losses = append(h.settled, messages...), h.losses+c.Losses()
	return c, problems
}

// Again repeats the count of everything settled: a duplicate may have arrived since.
func (h *Ledger) Again() (Counts, []string) {
	c, problems := h.count(h.settled, nil)
	if c.Losses() <= h.losses {
		return Counts{}, nil
	}
	return c, append(problems, "some of this came after it had been counted")
}

func (h *Ledger) count(messages []Message, stuck []string) (c Counts, problems []string) {
	c.Messages = len(messages)
	wrong := func(n *int, format string, args ...any) {
		*n++
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	l := h.Look(messages)
	for _, m := range messages {
		s := l.of[m.Token]
		told := h.Model.outcome(m.Token)
		switch {
		case len(s.reply) == 0:
			wrong(&c.Unanswered, "%s was never answered", m.Token)
		case !s.whole:
			wrong(&c.Unanswered, "%s was answered in part: %+v", m.Token, s.reply)
		}
		for i, p := range s.reply {
			c.Marked += p.marked
			if p.plain > 1 {
				wrong(&c.Twice, "part %d of the reply to %s came %d times without a mark", i+1, m.Token, p.plain)
			}
			if i > 0 && p.from < s.reply[i-1].to {
				wrong(&c.Twice, "the reply to %s came twice in other parts: %+v", m.Token, s.reply)
			}
		}
		c.Marked += s.news.marked + s.reminder.marked
		if !s.news.came() {
			wrong(&c.SendsLost, "the second channel never heard of %s", m.Token)
		}
		if s.news.plain > 1 {
			wrong(&c.SendsTwice, "the second channel heard of %s %d times without a mark", m.Token, s.news.plain)
		}
		switch did := told == "did "+m.Token; {
		case s.acts > 1:
			wrong(&c.ToolsTwice, "the tool ran %d times for %s", s.acts, m.Token)
		case did && s.acts != 1:
			wrong(&c.ToolsTwice, "the tool did not run for %s, and the model was told that it did", m.Token)
		case !did && strings.Contains(told, "unknown whether"):
			c.ToolsUnknown++
		case !did && s.whole:
			wrong(&c.ToolsTwice, "the model was told of the tool for %s: %q", m.Token, told)
		}
		if m.Reminder && !s.reminder.came() {
			wrong(&c.RemindersMissed, "the reminder of %s never came", m.Token)
		}
		if s.reminder.plain > 1 {
			wrong(&c.RemindersTwice, "the reminder of %s came %d times without a mark", m.Token, s.reminder.plain)
		}
		c.Latest = max(c.Latest, s.late.Seconds())
	}
	for _, s := range stuck {
		wrong(&c.EventsStuck, "stuck: %s", s)
	}
	for _, s := range l.stray {
		wrong(&c.Stray, "nothing led to this: %s", s)
	}
	for _, s := range h.Model.repeats() {
		wrong(&c.HeardTwice, "the model has read twice: %s", s)
	}
	c.DraftsLeft = len(l.drafts)
	for _, d := range h.Dead() {
		wrong(&c.Dead, "given up: %s", d)
	}
	return c, problems
}

// Patience bounds every wait; only a loss takes that long.
const Patience = 3 * time.Minute

// ErrTime means that a wait took too long.
var ErrTime = errors.New("it took too long")

// Until polls a condition.
func Until(what string, longest time.Duration, done func() bool) error {
	for deadline := time.Now().Add(cmp.Or(longest, Patience)); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %w", what, ErrTime)
		}
	}
	return nil
}
