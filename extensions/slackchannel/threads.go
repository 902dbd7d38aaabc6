package slackchannel

import (
	"context"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// maxThreadAge is how long the assistant listens in a thread without being mentioned,
	// after it was.
	maxThreadAge = 90 * 24 * time.Hour
	// maxThreads bounds the threads that are remembered in memory.
	maxThreads = 4096
)

// threads are those in which the assistant was mentioned: what is said there is for it.
type threads struct {
	kernel kernel
	prefix string // of the keys in the store

	mu       sync.Mutex
	known    map[string]bool
	prunedAt time.Time
}

// threadRecord is a stored thread.
type threadRecord struct {
	At int64 `json:"at"` // Unix seconds
}

// has reports whether the assistant takes part in a thread.
func (t *threads) has(ctx context.Context, to target) bool {
	key := t.key(to)
	t.mu.Lock()
	known := t.known[key]
	t.mu.Unlock()
	if known {
		return true
	}
	v, err := t.kernel.Get(ctx, key)
	if err != nil || v.Version == 0 {
		return false
	}
	t.remember(key)
	return true
}

func (t *threads) key(to target) string { return t.prefix + to.channel + "/" + to.thread }

func (t *threads) remember(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxThreads {
		clear(t.known)
	}
	t.known[key] = true
}

// join returns the effects that store a thread, and once a day delete old ones.
func (t *threads) join(ctx context.Context, to target, now time.Time) sdk.Effects {
	effects := sdk.Effects{sdk.Put(t.key(to), threadRecord{At: now.Unix()})}
	t.mu.Lock()
	due := now.Sub(t.prunedAt) > 24*time.Hour
	if due {
		t.prunedAt = now
	}
	t.mu.Unlock()
	if !due {
		return effects
	}
	_ = t.kernel.Scan(ctx, t.prefix, func(v sdk.Value) error {
		var r threadRecord
		if v.Decode(&r) != nil || now.Sub(time.Unix(r.At, 0)) > maxThreadAge {
			effects = append(effects, sdk.Delete(v.Key))
		}
		return nil
	})
	return effects[:min(len(effects), 100)]
}
