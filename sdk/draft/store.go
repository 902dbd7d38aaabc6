package draft

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// MaxAge is how long the message of a draft without a final text is stored.
const MaxAge = 7 * 24 * time.Hour

const pruneEvery = 24 * time.Hour

// Kernel is the part of *sdk.Kernel that drafts use.
type Kernel interface {
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Log() hclog.Logger
}

// store stores the message of each draft in the extension's own store, by account:
// another account could not edit them.
type store[M Message] struct {
	kernel Kernel
	prefix string

	mu       sync.Mutex
	prunedAt time.Time
}

func newStore[M Message](k Kernel, account string) *store[M] {
	return &store[M]{kernel: k, prefix: allDrafts + account + "/"}
}

const allDrafts = "draft/"

// load reads the messages of the account, and deletes old ones.
func (s *store[M]) load(ctx context.Context) (map[string]M, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	messages := map[string]M{}
	var old []sdk.Effect
	err := s.kernel.Scan(ctx, allDrafts, func(v sdk.Value) error {
		var m M
		if err := v.Decode(&m); err != nil || now.Sub(m.SentAt()) > MaxAge {
			old = append(old, sdk.Delete(v.Key))
		} else if draft, mine := strings.CutPrefix(v.Key, s.prefix); mine {
			messages[draft] = m
		}
		return nil
	})
	if err == nil && len(old) > 0 {
		_, err = s.kernel.Commit(ctx, old...)
	}
	if err != nil {
		return nil, fmt.Errorf("read drafts: %w", err)
	}
	s.prunedAt = now
	return messages, nil
}

// save stores the message of a draft.
func (s *store[M]) save(ctx context.Context, draft string, m M) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.kernel.Commit(ctx, sdk.Put(s.prefix+draft, m))
	return err
}

// remove returns the effect that deletes the message of a draft.
func (s *store[M]) remove(draft string) sdk.Effect { return sdk.Delete(s.prefix + draft) }

// pruneDue reports whether old messages should be deleted again.
func (s *store[M]) pruneDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.prunedAt) > pruneEvery
}
