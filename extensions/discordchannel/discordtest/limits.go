package discordtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Rate allows Burst requests in each window of time. The zero Rate allows all.
type Rate struct {
	Burst  int
	Window time.Duration
}

// Limits are the rates that the server enforces.
type Limits struct {
	Send   Rate // messages to a channel
	Edit   Rate // changes in a channel
	Delete Rate
	Typing Rate
	Bot    Rate // all requests together, but for answers to interactions
}

// DiscordLimits are the rates that bots see at Discord.
func DiscordLimits() Limits {
	return Limits{
		Send: Rate{5, 5 * time.Second}, Edit: Rate{5, 5 * time.Second}, Delete: Rate{5, time.Second},
		Typing: Rate{5, 5 * time.Second}, Bot: Rate{50, time.Second},
	}
}

// rate counts the requests of a window.
type rate struct {
	begun time.Time
	used  int
}

// take takes a request of a window. Wait is until the next one, if there was none left.
func (b *rate) take(now time.Time, r Rate) (remaining int, reset, wait time.Duration) {
	if now.Sub(b.begun) >= r.Window {
		b.begun, b.used = now, 0
	}
	reset = r.Window - now.Sub(b.begun)
	if b.used >= r.Burst {
		return 0, reset, reset
	}
	b.used++
	return r.Burst - b.used, reset, 0
}

// admit applies the rates to a request; mu is held.
func (s *Server) admit(c *call) (http.Header, *apiError) {
	now, head := s.now(), http.Header{}
	if r := s.limits.Bot; r.Burst > 0 {
		if _, _, wait := s.global.take(now, r); wait > 0 {
			e := refuse(http.StatusTooManyRequests, 0, "You are being rate limited.")
			e.retry, e.global = wait.Seconds(), true
			return head, e
		}
	}
	r := map[string]Rate{
		"createMessage": s.limits.Send, "editMessage": s.limits.Edit, "deleteMessage": s.limits.Delete,
		"typing": s.limits.Typing,
	}[c.name]
	if r.Burst == 0 {
		return head, nil
	}
	key := c.name + " " + c.channel
	b := s.routes[key]
	if b == nil {
		b = &rate{}
		s.routes[key] = b
	}
	remaining, reset, wait := b.take(now, r)
	head.Set("X-RateLimit-Bucket", fmt.Sprintf("%x", c.name))
	head.Set("X-RateLimit-Limit", strconv.Itoa(r.Burst))
	head.Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
	head.Set("X-RateLimit-Reset-After", strconv.FormatFloat(reset.Seconds(), 'f', 3, 64))
	head.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(now.Add(reset).UnixMilli())/1000, 'f', 3, 64))
	if wait > 0 {
		head.Set("X-RateLimit-Scope", "user")
		e := refuse(http.StatusTooManyRequests, 0, "You are being rate limited.")
		e.retry = wait.Seconds()
		return head, e
	}
	return head, nil
}
