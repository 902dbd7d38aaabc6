package slackchannel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

const (
	// maxWait is how long a send waits before the kernel retries it later.
	maxWait = 2 * time.Second
	// maxConversations is the number of conversations above which idle ones are dropped.
	maxConversations = 2048
)

// The rates of methods (docs.slack.dev/apis/web-api/rate-limits): one message a second in
// a conversation, with short bursts, and 50 edits and 50 deletions a minute.
const (
	postEvery  = time.Second
	postBurst  = 3
	editEvery  = time.Minute / 50
	editBurst  = 10
	spareEdits = editBurst / 2 // drafts leave these for final texts
)

// method is a method of the Web API with a rate of its own.
type method int

const (
	posting method = iota // of each conversation
	editing
	deleting
)

// pacer delays requests, by method and conversation. It always respects Retry-After, and
// if enabled also the documented rates.
//
// Drafts always respect the rates and use only spare budget: the conversation's must be
// unused, and half of the app's edits free. They never wait, so a send waits at most for
// the one running draft request of its conversation.
type pacer struct {
	enabled bool

	mu            sync.Mutex
	edits         *bucket
	deletions     *bucket
	conversations map[string]*bucket
	pruneAt       int // number of conversations that starts a prune
}

// bucket is the budget of a method.
type bucket struct {
	*rate.Limiter
	blockedUntil time.Time // no request before this time
}

func newBucket(every time.Duration, burst int) *bucket {
	return &bucket{Limiter: rate.NewLimiter(rate.Every(every), burst)}
}

func newPacer(enabled bool) *pacer {
	return &pacer{
		enabled: enabled, edits: newBucket(editEvery, editBurst), deletions: newBucket(editEvery, editBurst),
		conversations: map[string]*bucket{}, pruneAt: maxConversations,
	}
}

// bucket returns the budget of a method in a conversation; mu is held.
func (p *pacer) bucket(m method, channel string, now time.Time) *bucket {
	switch m {
	case editing:
		return p.edits
	case deleting:
		return p.deletions
	case posting:
	}
	b := p.conversations[channel]
	if b == nil {
		if len(p.conversations) >= p.pruneAt {
			p.prune(now)
		}
		b = newBucket(postEvery, postBurst)
		p.conversations[channel] = b
	}
	return b
}

// prune drops idle conversations; mu is held.
func (p *pacer) prune(now time.Time) {
	for id, b := range p.conversations {
		if b.TokensAt(now) >= postBurst && !b.blockedUntil.After(now) {
			delete(p.conversations, id)
		}
	}
	p.pruneAt = max(maxConversations, 2*len(p.conversations))
}

// block blocks a method for a time, as Slack requested.
func (p *pacer) block(m method, channel string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.bucket(m, channel, now).blockedUntil = now.Add(d)
}

// enter waits until a request may be made. If that takes too long, the error asks for a
// retry.
func (p *pacer) enter(ctx context.Context, m method, channel string) error {
	p.mu.Lock()
	now := time.Now()
	b := p.bucket(m, channel, now)
	wait := b.blockedUntil.Sub(now)
	if wait > 0 {
		p.mu.Unlock()
		return sdk.Retry(wait, fmt.Errorf("this conversation is limited by Slack: waiting %s", wait.Round(time.Second)))
	}
	if p.enabled {
		taken := b.ReserveN(now, 1)
		if wait = taken.DelayFrom(now); wait > maxWait {
			taken.CancelAt(now)
			p.mu.Unlock()
			return sdk.Retry(wait, errors.New("waiting for Slack's rate limit of this conversation"))
		}
	} else {
		b.AllowN(now, 1) // drafts count it
	}
	p.mu.Unlock()
	if !pause.For(ctx, wait) {
		return sdk.Retry(time.Second, context.Cause(ctx))
	}
	return nil
}

// tryEnter takes a request for a draft; false: there is no spare budget for at least wait.
func (p *pacer) tryEnter(channel string) (ok bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	b := p.bucket(posting, channel, now)
	wait = max(b.blockedUntil.Sub(now), p.edits.blockedUntil.Sub(now),
		missing(b, postBurst, postEvery, now), missing(p.edits, spareEdits+1, editEvery, now))
	if wait > 0 {
		return false, max(wait, 10*time.Millisecond)
	}
	b.AllowN(now, 1)
	p.edits.AllowN(now, 1)
	return true, 0
}

// missing returns how long it takes until a bucket has n tokens.
func missing(b *bucket, n float64, every time.Duration, now time.Time) time.Duration {
	return time.Duration((n - b.TokensAt(now)) * float64(every))
}
