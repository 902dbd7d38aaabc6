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
	Node() string
	Log() hclog.Logger
}

// store stores the message of each draft in the extension's own store, by account:
// another account could not edit them.
type store[M Message] struct {
	kernel Kernel
	prefix string
	node   string // this one; empty: there is no cluster

	mu       sync.Mutex
	prunedAt time.Time
}

// stored is a message in the store.
type stored[M Message] struct {
	draft, node, key string
	message          M
}

func newStore[M Message](k Kernel, account string) *store[M] {
	return &store[M]{kernel: k, prefix: allDrafts + account + "/", node: k.Node()}
}

const (
	allDrafts = "draft/"
	atNode    = "@" // no id of a draft has it
)

// key is where this node stores the message of a draft.
func (s *store[M]) key(draft string) string {
	if s.node == "" {
		return s.prefix + draft
	}
	return s.prefix + draft + atNode + s.node
}

// load reads the messages of the account, and deletes old ones.
func (s *store[M]) load(ctx context.Context) (all []stored[M], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var old []sdk.Effect
	err = s.kernel.Scan(ctx, allDrafts, func(v sdk.Value) error {
		var m M
		if err := v.Decode(&m); err != nil || now.Sub(m.SentAt()) > MaxAge {
			old = append(old, sdk.Delete(v.Key))
		} else if name, mine := strings.CutPrefix(v.Key, s.prefix); mine {
			draft, node, _ := strings.Cut(name, atNode)
			all = append(all, stored[M]{draft: draft, node: node, key: v.Key, message: m})
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
	return all, nil
}

// save stores the message of a draft, in place of former ones.
func (s *store[M]) save(ctx context.Context, key string, m M, former []string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.kernel.Commit(ctx, append(remove(former), sdk.Put(key, m))...)
	return err
}

// remove returns the effects that delete messages.
func remove(keys []string) (effects sdk.Effects) {
	for _, key := range keys {
		effects = append(effects, sdk.Delete(key))
	}
	return effects
}

// pruneDue reports whether old messages should be deleted again.
func (s *store[M]) pruneDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.prunedAt) > pruneEvery
}
