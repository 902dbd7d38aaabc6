package telegramtest

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Rate allows Burst messages at once and one more every Every; with a Window
// instead, Burst messages within any time of that length. The zero Rate allows all.
type Rate struct {
	Every  time.Duration
	Burst  int
	Window time.Duration
}

// Limits are the rates that the server enforces on sends and edits alike;
// deleting is free. Chat actions are free, too, unless Actions is true: then they
// count like messages.
type Limits struct {
	Chat    Rate // a private chat
	Group   Rate
	Bot     Rate // all chats together
	Actions bool
}

// TelegramLimits are the rates that Telegram documents: one message a second
// to a chat with short bursts, 20 in any minute to a group, 30 a second altogether.
func TelegramLimits() Limits {
	return Limits{
		Chat:  Rate{Every: time.Second, Burst: 3},
		Group: Rate{Window: time.Minute, Burst: 20},
		Bot:   Rate{Every: time.Second / 30, Burst: 30},
	}
}

// bucket is a token bucket, stored as the time at which it is full again, or as the
// times of the messages admitted within the last window.
type bucket struct {
	mu       sync.Mutex
	full     time.Time
	admitted []time.Time
}

// take takes a token, or returns the seconds until the next one.
func (b *bucket) take(now time.Time, r Rate) (retryAfter int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case r.Window > 0:
		b.admitted = slices.DeleteFunc(b.admitted, func(t time.Time) bool { return now.Sub(t) >= r.Window })
		if len(b.admitted) >= max(r.Burst, 1) {
			return int(math.Ceil((r.Window - now.Sub(b.admitted[0])).Seconds()))
		}
		b.admitted = append(b.admitted, now)
		return 0
	case r.Every <= 0:
		return 0
	}
	full := b.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(r.Every)
	if over := full.Sub(now) - time.Duration(max(r.Burst, 1))*r.Every; over > 0 {
		return int(math.Ceil(over.Seconds()))
	}
	b.full = full
	return 0
}

// admit applies the rates to a send or an edit in the chat.
func (s *Server) admit(c *chat) *apiError {
	r := s.limits.Chat
	if c.info.Type != Private {
		r = s.limits.Group
	}
	now := s.now()
	if wait := c.rate.take(now, r); wait > 0 {
		return tooMany(wait)
	}
	if wait := s.global.take(now, s.limits.Bot); wait > 0 {
		return tooMany(wait)
	}
	return nil
}
