package discordchannel

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

const (
	// maxWait is how long a call waits before the kernel retries it later.
	maxWait = 2 * time.Second
	// maxRoutes is the number of limits above which old ones are dropped.
	maxRoutes = 2048
	// spareForSends is how many requests of a channel drafts leave to messages.
	spareForSends = 1
	// perSecond and burst keep the bot within 50 requests in any second.
	perSecond, burst = 40, 10
	// unlimited is the limit of a route whose response names none.
	unlimited = 1 << 20
)

// limits keep the rates that Discord's responses name: those of a route in one channel,
// and those of the bot. A channel that waits delays no other.
type limits struct {
	pace *rate.Limiter // of the bot; nil: none

	mu           sync.Mutex
	blockedUntil time.Time         // no request of the bot before this time
	buckets      map[string]string // name of the limit by route
	states       map[string]*limit // by name and channel
	pruneAt      int
	freed        chan struct{} // closed when a request ends; nil: no waiter
}

// limit is one limit of Discord, which several routes may share.
type limit struct {
	known        bool
	most         int
	remaining    int
	resetAt      time.Time
	running      int
	blockedUntil time.Time
}

// rateInfo are the limits in a response.
type rateInfo struct {
	answered   bool   // there was a response
	bucket     string // empty: none
	most       int
	remaining  int
	resetAfter time.Duration
	retryAfter time.Duration // of status 429
	all        bool          // retryAfter is the bot's
}

func newLimits(pace bool) *limits {
	l := &limits{buckets: map[string]string{}, states: map[string]*limit{}, pruneAt: maxRoutes}
	if pace {
		l.pace = rate.NewLimiter(perSecond, burst)
	}
	return l
}

func seconds(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64)
	return n
}

func readRate(h http.Header) (r rateInfo) {
	r.answered = true
	r.bucket = h.Get("X-RateLimit-Bucket")
	r.most, _ = strconv.Atoi(h.Get("X-RateLimit-Limit"))
	r.remaining, _ = strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	r.resetAfter = time.Duration(seconds(h.Get("X-RateLimit-Reset-After")) * float64(time.Second))
	return r
}

// route names what a limit counts: a method and a path without ids, and the channel.
type route struct{ template, major string }

func routeOf(method, path string) route {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	r := route{}
	for i := 2; i < len(parts); i++ {
		if _, err := strconv.ParseUint(parts[i], 10, 64); err != nil {
			continue
		}
		if i == 2 && parts[1] == "channels" {
			r.major = parts[i]
		}
		parts[i] = "*"
	}
	r.template = method + " " + strings.Join(parts, "/")
	return r
}

// state returns the limit of a route; mu is held.
func (l *limits) state(r route, now time.Time) *limit {
	name := r.template
	if bucket := l.buckets[r.template]; bucket != "" {
		name = bucket
	}
	name += " " + r.major
	s := l.states[name]
	if s == nil {
		if len(l.states) >= l.pruneAt {
			l.prune(now)
		}
		s = &limit{}
		l.states[name] = s
	}
	return s
}

// prune drops limits that nothing counts in; mu is held.
func (l *limits) prune(now time.Time) {
	for name, s := range l.states {
		if s.running == 0 && !s.resetAt.After(now) && !s.blockedUntil.After(now) {
			delete(l.states, name)
		}
	}
	l.pruneAt = max(maxRoutes, 2*len(l.states))
}

// wait returns how long a request must wait that leaves room for others; until a request
// ends, if that may be sooner.
func (s *limit) wait(now time.Time, room int) time.Duration {
	if wait := s.blockedUntil.Sub(now); wait > 0 {
		return wait
	}
	free := s.remaining
	switch {
	case !s.known:
		free = 1 // Discord names the limit in the first response
		room = 0
	case !s.resetAt.After(now):
		free = s.most
	}
	if free-s.running > min(room, s.most-1) {
		return 0
	}
	return max(s.resetAt.Sub(now), 50*time.Millisecond)
}

// enter waits until a request may be made. If that takes too long, the error is a
// *limitedError. leave must be called when the request has ended.
func (l *limits) enter(ctx context.Context, r route, spare bool) (leave func(rateInfo), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	deadline, room := now.Add(maxWait), 0
	if spare {
		deadline, room = now, spareForSends
	}
	for {
		s := l.state(r, now)
		wait, all := s.wait(now, room), false
		if bot := l.blockedUntil.Sub(now); bot > wait {
			wait, all = bot, true
		}
		if wait <= 0 && l.pace != nil {
			if wait = l.paced(now, spare); wait > 0 {
				all = true
			}
		}
		switch {
		case wait <= 0:
			s.running++
			return func(told rateInfo) { l.leave(r, s, told) }, nil
		case now.Add(wait).After(deadline) && (spare || s.running == 0 || s.blockedUntil.After(now)):
			return nil, &limitedError{after: wait, all: all}
		case !now.Before(deadline):
			return nil, &limitedError{after: wait, all: all}
		}
		if l.freed == nil {
			l.freed = make(chan struct{})
		}
		freed := l.freed
		l.mu.Unlock()
		ended := !pause.Until(ctx, min(wait, deadline.Sub(now)), freed)
		l.mu.Lock()
		if ended {
			return nil, &httpcall.Error{Err: ctx.Err()}
		}
		now = time.Now()
	}
}

// paced takes a request from the bot's rate, or returns how long to wait. Drafts leave
// half of it free.
func (l *limits) paced(now time.Time, spare bool) time.Duration {
	if spare && l.pace.TokensAt(now) < burst/2 {
		return time.Second / perSecond
	}
	if l.pace.AllowN(now, 1) {
		return 0
	}
	return time.Second / perSecond
}

// leave notes the limits in the response to a request.
func (l *limits) leave(r route, s *limit, told rateInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	s.running--
	if told.bucket != "" && l.buckets[r.template] != told.bucket {
		l.buckets[r.template] = told.bucket
	}
	s = l.state(r, now)
	if told.bucket != "" {
		reset := now.Add(told.resetAfter)
		if !s.known || !s.resetAt.After(now) {
			s.remaining = told.remaining
		}
		s.known, s.most, s.resetAt = true, told.most, reset
		s.remaining = min(s.remaining, told.remaining)
	}
	if told.answered && told.bucket == "" && !s.known {
		s.known, s.most, s.remaining = true, unlimited, unlimited
	}
	if told.retryAfter > 0 {
		if told.all {
			l.blockedUntil = now.Add(told.retryAfter)
		} else {
			s.blockedUntil = now.Add(told.retryAfter)
		}
	}
	if l.freed != nil {
		close(l.freed)
		l.freed = nil
	}
}
