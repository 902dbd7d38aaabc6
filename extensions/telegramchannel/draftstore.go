package telegramchannel

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// maxDraftAge is how long the message of a draft without a final text is stored.
const maxDraftAge = 7 * 24 * time.Hour

const pruneEvery = 24 * time.Hour

// draftRecord is the stored message of a draft.
type draftRecord struct {
	Chat    int64 `json:"chat"`
	Topic   int   `json:"topic,omitempty"`
	Message int   `json:"message"`
	At      int64 `json:"at"` // Unix seconds
}

func (r draftRecord) stale(now time.Time) bool { return now.Sub(time.Unix(r.At, 0)) > maxDraftAge }

// draftStore stores the message of each draft in the extension's own store, by bot:
// another bot could not edit them.
type draftStore struct {
	kernel kernel
	prefix string

	mu       sync.Mutex
	prunedAt time.Time
}

func newDraftStore(k kernel, token string) *draftStore {
	id, _, _ := strings.Cut(token, ":")
	return &draftStore{kernel: k, prefix: allDrafts + id + "/"}
}

const allDrafts = "draft/"

// load reads the records of the bot, and deletes old records.
func (s *draftStore) load(ctx context.Context) (map[string]draftRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	records := map[string]draftRecord{}
	var old []sdk.Effect
	err := s.kernel.Scan(ctx, allDrafts, func(v sdk.Value) error {
		var r draftRecord
		if err := v.Decode(&r); err != nil || r.stale(now) {
			old = append(old, sdk.Delete(v.Key))
		} else if draft, mine := strings.CutPrefix(v.Key, s.prefix); mine {
			records[draft] = r
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
	return records, nil
}

// save stores the message of a draft.
func (s *draftStore) save(ctx context.Context, draft string, r draftRecord) error {
	ctx, cancel := context.WithTimeout(ctx, draftTimeout)
	defer cancel()
	_, err := s.kernel.Commit(ctx, sdk.Put(s.prefix+draft, r))
	return err
}

// remove returns the effect that deletes the record of a draft.
func (s *draftStore) remove(draft string) sdk.Effect { return sdk.Delete(s.prefix + draft) }

// pruneDue reports whether old records should be deleted again.
func (s *draftStore) pruneDue(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.prunedAt) > pruneEvery
}
