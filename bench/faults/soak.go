package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
)

const (
	soakChats  = 200 // at most
	peakFor    = 10 * time.Second
	restFor    = 15 * time.Second // the start, excluded from both windows
	reminderIn = 10               // every tenth message sets a reminder
)

// soaked compares the beginning of the soak with its end.
type soaked struct {
	Seconds   float64 `json:"seconds"`
	Peak      float64 `json:"peak_per_second"`
	Rate      float64 `json:"rate_per_second"`
	Window    float64 `json:"window_seconds"`
	FirstPSS  float64 `json:"first_pss_mib"`
	LastPSS   float64 `json:"last_pss_mib"`
	FirstP99  float64 `json:"first_p99_ms"`
	LastP99   float64 `json:"last_p99_ms"`
	FirstP50  float64 `json:"first_p50_ms"`
	LastP50   float64 `json:"last_p50_ms"`
	PSSRatio  float64 `json:"pss_ratio"`
	P99Ratio  float64 `json:"p99_ratio"`
	Disturbed int     `json:"late_by_the_driver"` // messages that had to wait for a free chat
	// Minutes has the figures of each minute, to show a drift.
	Minutes []minute `json:"minutes"`
}

func (s *soaked) bad() bool { return s.PSSRatio > 1.1 || s.P99Ratio > 1.5 }

func (s *soaked) print() {
	fmt.Printf("soak of %.0f s at %.0f messages/s (peak %.0f); the last %.0f s beside the first:\n", s.Seconds, s.Rate,
		s.Peak, s.Window)
	fmt.Printf("  memory (PSS, median) %.1f MiB, before %.1f: %.2f times (1.1 allowed)\n", s.LastPSS, s.FirstPSS,
		s.PSSRatio)
	for _, m := range s.Minutes {
		fmt.Println("  " + m.String())
	}
	fmt.Printf("  p99 %.1f ms, before %.1f: %.2f times (1.5 allowed); p50 %.1f ms, before %.1f\n", s.LastP99, s.FirstP99,
		s.P99Ratio, s.LastP50, s.FirstP50)
}

// soak sends messages at half of the maximal rate for a long time, and kills a process every
// few seconds.
func soak(r *run, random *rand.Rand) error {
	h, err := newHome(r.binary, r.channel, "")
	if err != nil {
		return err
	}
	keep := false
	defer func() { h.close(keep) }()
	if err := h.start(); err != nil {
		return err
	}
	if err := h.warm(); err != nil {
		return err
	}
	l := &load{home: h, began: time.Now(), wrote: map[string]time.Time{}, free: make(chan int, soakChats)}
	for c := range ledger.Most(r.channel, soakChats) {
		l.free <- c
	}
	h.onMessage(l.replied)
	s := &soaked{Rate: r.rate}
	if r.rate == 0 {
		s.Peak = l.peak()
		s.Rate = s.Peak / 2
	}
	r.say("peak %.0f messages/s, going on at %.0f", s.Peak, s.Rate)
	began := time.Now()
	l.reset(began)
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { l.sample(stop) })
	beside.Go(func() { l.eachMinute(r, began, stop) })
	var by map[string]ledger.Counts
	beside.Go(func() { by, err = l.strikes(r, random, stop) })
	s.Disturbed = l.write(s.Rate, began.Add(r.soak))
	close(stop)
	beside.Wait()
	if err != nil {
		return err
	}
	s.measure(l, began, r.soak)
	s.Minutes = l.minutes(began, r.soak)
	c, problems := h.Settle(l.messages)
	for _, p := range h.ProcessesLeft() {
		c.ProcessesLeft++
		problems = append(problems, "leftover process: "+p)
	}
	if keep = len(problems) > 0; keep {
		problems = append(problems, "see "+h.dir)
		r.say("%s", problems)
	}
	for victim, of := range by {
		r.report.add(r.part("soak"), victim, of, 0)
	}
	r.report.add(r.part("soak"), "any of them", c, time.Since(began))
	r.report.Soak, r.report.Problems = s, append(r.report.Problems, problems...)
	return nil
}

// load writes messages and records the times of their answers.
type load struct {
	*home
	began    time.Time
	messages []ledger.Message
	free     chan int // chats without an open message

	mu    sync.Mutex
	wrote map[string]time.Time // messages without a reply
	took  []timed[time.Duration]
	used  []timed[use]
	kills []timed[string]
}

type timed[T any] struct {
	at time.Time
	v  T
}

func (l *load) replied(m ledger.Arrived) {
	if strings.Contains(m.Text, "Reminder ") {
		return
	}
	token := ledger.TokenIn(m.Text)
	l.mu.Lock()
	at, first := l.wrote[token]
	if first {
		delete(l.wrote, token)
		l.took = append(l.took, timed[time.Duration]{at, time.Since(at)})
	}
	l.mu.Unlock()
	if first {
		l.free <- int(m.Chat - ledger.ChatOf(0))
	}
}

// one writes in a chat; the latency counts from the scheduled time.
func (l *load) one(chat int, meant time.Time) {
	m := ledger.Message{Token: ledger.TokenOf("s", len(l.messages)), Chat: ledger.ChatOf(chat), Reminder: len(l.messages)%reminderIn == 0}
	j := ledger.Job{}
	if m.Reminder {
		j.Delay = ledger.DelayOf(len(l.messages))
	}
	l.Model.Want(m.Token, j)
	l.messages = append(l.messages, m)
	l.mu.Lock()
	l.wrote[m.Token] = meant
	l.mu.Unlock()
	l.home.write(m.Chat, m.Token)
}

// peak returns the messages answered per second when each person writes again at once.
func (l *load) peak() float64 {
	began := time.Now()
	for time.Since(began) < peakFor {
		select {
		case chat := <-l.free:
			l.one(chat, time.Now())
		case <-time.After(10 * time.Millisecond):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(len(l.took)) / time.Since(began).Seconds()
}

func (l *load) reset(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.took = at, nil
}

// write keeps the rate until the end. A message without a free chat waits, which counts as
// latency.
func (l *load) write(rate float64, end time.Time) (late int) {
	pause := time.Duration(float64(time.Second) / rate)
	for next := time.Now(); next.Before(end); next = next.Add(pause) {
		time.Sleep(time.Until(next))
		select {
		case chat := <-l.free:
			l.one(chat, next)
		default:
			late++
			select {
			case chat := <-l.free:
				l.one(chat, next)
			case <-time.After(time.Until(end.Add(l.Patience))):
				return late // no more answers, which is counted
			}
		}
	}
	return late
}

func (l *load) sample(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
			if pid := l.PID(); pid != 0 {
				u := l.use(pid)
				l.mu.Lock()
				l.used = append(l.used, timed[use]{time.Now(), u})
				l.mu.Unlock()
			}
		}
	}
}

// strikes kills the kernel or an extension repeatedly.
func (l *load) strikes(r *run, random *rand.Rand, stop <-chan struct{}) (map[string]ledger.Counts, error) {
	by := map[string]ledger.Counts{}
	b := &batch{home: l.home, random: random}
	for {
		pause := moment(0.5+random.Float64(), r.every)
		select {
		case <-stop:
			return by, nil
		case <-time.After(pause):
		}
		b.killed = map[string]int{}
		victim := b.strikeOne(random.IntN(2) == 0, random.Float64())
		c := by[victim]
		c.Kills++
		by[victim] = c
		l.mu.Lock()
		l.kills = append(l.kills, timed[string]{time.Now(), victim})
		l.mu.Unlock()
		if victim == "kernel" {
			if err := l.start(); err != nil {
				return by, err
			}
		}
	}
}

// measure compares the last sixth with the first: five minutes of thirty.
func (s *soaked) measure(l *load, began time.Time, of time.Duration) {
	window := of / 6
	s.Seconds, s.Window = of.Seconds(), window.Seconds()
	rest := min(restFor, window/4)
	within := func(at time.Time, from time.Duration) bool {
		d := at.Sub(began)
		return d >= from && d < from+window
	}
	memory := func(from time.Duration) float64 {
		var all []float64
		for _, p := range l.used {
			if within(p.at, from) {
				all = append(all, p.v.total())
			}
		}
		return quantile(all, 0.5)
	}
	waited := func(from time.Duration, q float64) float64 {
		var all []time.Duration
		for _, p := range l.took {
			if within(p.at, from) {
				all = append(all, p.v)
			}
		}
		return float64(quantile(all, q)) / float64(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.FirstPSS, s.LastPSS = memory(rest), memory(of-window)
	s.FirstP99, s.LastP99 = waited(rest, 0.99), waited(of-window, 0.99)
	s.FirstP50, s.LastP50 = waited(rest, 0.5), waited(of-window, 0.5)
	s.PSSRatio, s.P99Ratio = ratio(s.LastPSS, s.FirstPSS), ratio(s.LastP99, s.FirstP99)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func quantile[T float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}
