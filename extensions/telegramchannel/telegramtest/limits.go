package telegramtest

import (
	"math"
	"sync"
	"time"
)

// Rate allows Burst messages at once and one more every Every. The zero Rate allows all.
type Rate struct {
	Every time.Duration
	Burst int
}

// Limits are the rates that the server enforces on sends and edits. Chat
// actions are free, as long as Actions is false; then they count like messages.
type Limits struct {
	Chat    Rate // a private chat
	Group   Rate
	Bot     Rate // all chats together
	Actions bool
}

// TelegramLimits are the rates that Telegram documents: one message a second
// to a chat with short bursts, 20 a minute to a group, 30 a second altogether.
func TelegramLimits() Limits {
	return Limits{
		Chat:  Rate{Every: time.Second, Burst: 3},
		Group: Rate{Every: 3 * time.Second, Burst: 20},
		Bot:   Rate{Every: time.Second / 30, Burst: 30},
	}
}

// bucket is a token bucket, kept as the time at which it will be full again.
type bucket struct {
	mu   sync.Mutex
	full time.Time
}

// take takes a token, or says in how many seconds to come back.
func (b *bucket) take(now time.Time, r Rate) (retryAfter int) {
	if r.Every <= 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
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

// admit applies the rates to a send into the chat.
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
