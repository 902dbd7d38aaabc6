package telegramchannel

import "time"

// budget is a number of requests that leaks out at a steady rate. A request that
// is under way counts in full, and begins to leak out only when it has ended: so
// whenever in between it arrives, Telegram never sees more than the budget.
type budget struct {
	every time.Duration // in which one request leaks out
	burst int
	under int       // requests under way
	dry   time.Time // when those that have ended have leaked out
}

// wait is how long it takes, at the least, until n more requests fit in, and
// spare beside them.
func (b *budget) wait(now time.Time, n, spare int) time.Duration {
	used := time.Duration(b.under)*b.every + max(0, b.dry.Sub(now))
	return max(0, used-time.Duration(b.burst-spare-n)*b.every)
}

func (b *budget) begin() { b.under++ }

func (b *budget) end(now time.Time) {
	b.under--
	if b.dry.Before(now) {
		b.dry = now
	}
	b.dry = b.dry.Add(b.every)
}

// idle reports whether nothing of the budget is used.
func (b *budget) idle(now time.Time) bool { return b.under == 0 && !b.dry.After(now) }
