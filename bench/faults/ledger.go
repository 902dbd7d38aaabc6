package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/switchboard-run/switchboard/contract"
)

// message is a person's message with its expected results.
type message struct {
	token    string
	chat     int64
	reminder bool
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

// ledger has the results of messages, and unexpected texts.
type ledger struct {
	of     map[string]*came
	stray  []string // texts without a message
	drafts []string // unfinished drafts
}

// look reads the results of messages from the platform and from the second channel.
func (h *home) look(messages []message) ledger {
	l := ledger{of: map[string]*came{}}
	chats := map[int64]bool{}
	for _, m := range messages {
		l.of[m.token] = &came{}
		chats[m.chat] = true
	}
	for chat := range chats {
		for _, m := range h.platform.messages(chat) {
			text, marked := strings.CutPrefix(m.text, contract.RepeatMark)
			token := tokenIn(text)
			c := l.of[token]
			text = strings.TrimPrefix(text, "⏰ ") // the scheduler's mark of a reminder
			switch remind := strings.HasPrefix(text, "Reminder "); {
			case strings.HasSuffix(text, draftMark):
				l.drafts = append(l.drafts, fmt.Sprintf("chat %d: %q", chat, m.text))
			case c != nil && remind:
				if !c.reminder.came() {
					c.late = max(0, m.at.Sub(h.model.due(token)))
				}
				c.reminder.add(marked)
			case !remind && c != nil && c.add(text, h.model.reply(token), marked):
			case c == nil && h.model.knows(token): // of another batch
			default:
				l.stray = append(l.stray, fmt.Sprintf("chat %d: %q", chat, m.text))
			}
		}
	}
	for _, line := range h.noted("news") {
		text, marked := strings.CutPrefix(line, contract.RepeatMark)
		if c := l.of[tokenIn(text)]; c != nil && text == newsOf(tokenIn(text)) {
			c.news.add(marked)
		} else if line != "" && !h.model.knows(tokenIn(text)) {
			l.stray = append(l.stray, fmt.Sprintf("second channel: %q", line))
		}
	}
	for _, line := range h.noted("acts") {
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

func tokenIn(text string) string {
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

// complete reports whether all results of messages have arrived.
func (h *home) complete(messages []message) bool {
	l := h.look(messages)
	return !slices.ContainsFunc(messages, func(m message) bool {
		c := l.of[m.token]
		return !c.whole || !c.news.came() || m.reminder && !c.reminder.came()
	})
}

// settle waits until all results have arrived and no work is pending, and counts.
func (h *home) settle(messages []message) (counts, []string) {
	_ = until("everything to come", h.patience, func() bool { return h.complete(messages) })
	// Pending work may be a duplicate.
	stuck := []string{}
	_ = until("nothing to be under way", h.patience, func() bool { stuck = h.pending(); return len(stuck) == 0 })
	c, problems := h.count(messages, stuck)
	h.settled, h.losses = append(h.settled, messages...), h.losses+c.losses()
	return c, problems
}

// again repeats the count of everything settled: a duplicate may have arrived since.
func (h *home) again() (counts, []string) {
	c, problems := h.count(h.settled, nil)
	if c.losses() <= h.losses {
		return counts{}, nil
	}
	return c, append(problems, "some of this came after it had been counted")
}

func (h *home) count(messages []message, stuck []string) (c counts, problems []string) {
	c.Messages = len(messages)
	wrong := func(n *int, format string, args ...any) {
		*n++
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	l := h.look(messages)
	for _, m := range messages {
		s := l.of[m.token]
		told := h.model.outcome(m.token)
		switch {
		case len(s.reply) == 0:
			wrong(&c.Unanswered, "%s was never answered", m.token)
		case !s.whole:
			wrong(&c.Unanswered, "%s was answered in part: %+v", m.token, s.reply)
		}
		for i, p := range s.reply {
			c.Marked += p.marked
			if p.plain > 1 {
				wrong(&c.Twice, "part %d of the reply to %s came %d times without a mark", i+1, m.token, p.plain)
			}
			if i > 0 && p.from < s.reply[i-1].to {
				wrong(&c.Twice, "the reply to %s came twice in other parts: %+v", m.token, s.reply)
			}
		}
		c.Marked += s.news.marked + s.reminder.marked
		if !s.news.came() {
			wrong(&c.SendsLost, "the second channel never heard of %s", m.token)
		}
		if s.news.plain > 1 {
			wrong(&c.SendsTwice, "the second channel heard of %s %d times without a mark", m.token, s.news.plain)
		}
		switch did := told == "did "+m.token; {
		case s.acts > 1:
			wrong(&c.ToolsTwice, "the tool ran %d times for %s", s.acts, m.token)
		case did && s.acts != 1:
			wrong(&c.ToolsTwice, "the tool did not run for %s, and the model was told that it did", m.token)
		case !did && strings.Contains(told, "unknown whether"):
			c.ToolsUnknown++
		case !did && s.whole:
			wrong(&c.ToolsTwice, "the model was told of the tool for %s: %q", m.token, told)
		}
		if m.reminder && !s.reminder.came() {
			wrong(&c.RemindersMissed, "the reminder of %s never came", m.token)
		}
		if s.reminder.plain > 1 {
			wrong(&c.RemindersTwice, "the reminder of %s came %d times without a mark", m.token, s.reminder.plain)
		}
		c.Latest = max(c.Latest, s.late.Seconds())
	}
	for _, s := range stuck {
		wrong(&c.EventsStuck, "stuck: %s", s)
	}
	for _, s := range l.stray {
		wrong(&c.Stray, "nothing led to this: %s", s)
	}
	for _, s := range h.model.repeats() {
		wrong(&c.HeardTwice, "the model has read twice: %s", s)
	}
	c.DraftsLeft = len(l.drafts)
	for _, d := range h.query(`SELECT e.topic, d.reason FROM delivery d JOIN event e ON e.seq = d.seq WHERE d.state = 3`) {
		wrong(&c.Dead, "given up: %s", d)
	}
	return c, problems
}
