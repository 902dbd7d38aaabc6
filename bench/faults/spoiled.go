package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
)

// spoil describes a kernel that breaks a promise, and the count that must detect it.
type spoil struct {
	what  string // see SWITCHBOARD_SPOIL
	crash string // the commit at which the kernel is killed
	from  string // the topic with which the count of commits begins
	found func(ledger.Counts) int
}

// spoils are kernels that lose or repeat something.
func spoils(channel string, act int) []spoil {
	all := []spoil{
		{"delivery agent.input.keeper", "after 1", "user.message", func(c ledger.Counts) int { return c.Unanswered }},
		{"delivery channel.send.shop", "after 1", "channel.send.shop", func(c ledger.Counts) int { return c.SendsLost }},
		{"delivery channel.send." + channel, "after 1", "channel.send." + channel,
			func(c ledger.Counts) int { return c.Unanswered + c.RemindersMissed }},
		{"settled channel.send.shop", "after 4", "channel.send.shop", func(c ledger.Counts) int { return c.SendsTwice }},
		{"settled channel.send." + channel, "", "", func(c ledger.Counts) int { return c.EventsStuck }},
		{"settled agent.input.keeper", "", "", func(c ledger.Counts) int { return c.EventsStuck }},
		{"call shop/act", fmt.Sprint("before ", act), "user.message", func(c ledger.Counts) int { return c.ToolsTwice }},
	}
	if channel == ledger.ChannelID("terminal") || channel == ledger.ChannelID("slack") { // they write again what was not acknowledged
		all = append(all, spoil{"dedupe user.message", "after 1", "user.message", func(c ledger.Counts) int { return c.Twice + c.HeardTwice }})
	}
	return all
}

// soon is the patience with kernels that lose messages.
const soon = 10 * time.Second

// spoiled runs kernels that lose and repeat things, and fails if the counts do not detect
// it.
func spoiled(r *run, _ *rand.Rand) error {
	did, err := r.trace(ledger.AtOnce)
	if err != nil {
		return err
	}
	act := 0
	for i, text := range did {
		if act == 0 && strings.Contains(text, "call shop/act done") {
			act = i + 1
		}
	}
	all := spoils(ledger.ChannelID(r.channel), act)
	return r.each(len(all), func(i int, _ *sync.Mutex) error {
		s := all[i]
		h, err := newHome(r.binary, r.channel, lean)
		if err != nil {
			return err
		}
		defer h.close(false)
		h.Patience = soon
		spoil := "SWITCHBOARD_SPOIL=" + s.what
		h.extra = []string{spoil}
		if s.crash != "" {
			h.extra = append(h.extra, "SWITCHBOARD_CRASH="+s.crash, "SWITCHBOARD_CRASH_FROM="+s.from)
		}
		if err := h.start(); err != nil {
			return err
		}
		messages := h.one(ledger.AtOnce)
		if s.crash != "" {
			if fell, err := h.fall(messages); err != nil || fell == 0 {
				return fmt.Errorf("%s: the kernel was not killed %s: %w", s.what, s.crash, err)
			}
			h.extra = []string{spoil}
			if err := h.start(); err != nil {
				return err
			}
		}
		c, problems := h.Settle(messages)
		if s.found(c) == 0 {
			return fmt.Errorf("a kernel with %q, killed %q, is not detected; counts: %+v, %q", s.what, s.crash, c, problems)
		}
		r.say("noticed: %s: %s", s.what, problems[0])
		return nil
	})
}
