package telegramchannel

import "time"

// budget is a leaky bucket of requests. A running request counts in full and starts
// to leak only when it ends, so Telegram never sees more than the budget, whenever
// the request arrives in between.
type budget struct {
	every   time.Duration // time for one request to leak
	burst   int
	running int       // running requests
	emptyAt time.Time // when all ended requests have leaked
}

// wait returns the least time until n more requests, and spare others, fit.
func (b *budget) wait(now time.Time, n, spare int) time.Duration {
	used := time.Duration(b.running)*b.every + max(0, b.emptyAt.Sub(now))
	return max(0, used-time.Duration(b.burst-spare-n)*b.every)
}

func (b *budget) begin() { b.running++ }

func (b *budget) end(now time.Time) {
	b.running--
	if b.emptyAt.Before(now) {
		b.emptyAt = now
	}
	b.emptyAt = b.emptyAt.Add(b.every)
}

// idle reports whether the budget is unused.
func (b *budget) idle(now time.Time) bool { return b.running == 0 && !b.emptyAt.After(now) }
