package slacktest

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// rates has a bucket for each method, and for chat.postMessage one for each conversation.
type rates map[string]*rate.Limiter

// tiers are the requests a minute of methods, and how many may come at once.
var tiers = map[string]struct {
	perMinute float64
	burst     int
}{
	"chat.postMessage": {60, 4}, "chat.postEphemeral": {100, 25},
	"chat.update": {50, 12}, "chat.delete": {50, 12}, "conversations.history": {50, 12},
	"conversations.replies": {50, 12}, "conversations.info": {50, 12}, "conversations.open": {50, 12},
	"users.info": {100, 25}, "users.conversations": {50, 12}, "files.info": {100, 25},
	"files.getUploadURLExternal":   {100, 25},
	"files.completeUploadExternal": {100, 25}, "apps.connections.open": {1 * 20, 5},
}

// tooMany takes a request out of its bucket, and returns how many seconds to wait.
func (s *Server) tooMany(method, channel string) int {
	tier, ok := tiers[method]
	if !s.limited || !ok {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := method
	if method == "chat.postMessage" {
		key += " " + channel
	}
	l := s.rates[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(tier.perMinute/60), tier.burst)
		s.rates[key] = l
	}
	now := s.now()
	taken := l.ReserveN(now, 1)
	wait := taken.DelayFrom(now)
	if wait <= 0 {
		return 0
	}
	taken.CancelAt(now)
	return max(1, int(math.Ceil(float64(wait)/float64(time.Second))))
}
