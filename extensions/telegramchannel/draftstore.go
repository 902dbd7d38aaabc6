package telegramchannel

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// draftAge is how long the message of a draft is remembered whose final text
// never came.
const draftAge = 7 * 24 * time.Hour

// tidyEvery is how often what is too old is removed.
const tidyEvery = 24 * time.Hour

// record is the message of a draft, as it is stored.
type record struct {
	Chat    int64 `json:"chat"`
	Topic   int   `json:"topic,omitempty"`
	Message int   `json:"message"`
	At      int64 `json:"at"` // Unix seconds
}

func (r record) stale(now time.Time) bool { return now.Sub(time.Unix(r.At, 0)) > draftAge }

// draftStore remembers which message belongs to which draft, in the extension's
// own store and for one bot: another one could not edit its messages.
type draftStore struct {
	kernel kernel
	prefix string

	mu     sync.Mutex
	tidied time.Time
}

func newDraftStore(k kernel, token string) *draftStore {
	id, _, _ := strings.Cut(token, ":")
	return &draftStore{kernel: k, prefix: allDrafts + id + "/"}
}

const allDrafts = "draft/"

// load reads what is stored for the bot, and forgets what is old.
func (s *draftStore) load(ctx context.Context) (map[string]record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	records := map[string]record{}
	var old []sdk.Effect
	err := s.kernel.Scan(ctx, allDrafts, func(v sdk.Value) error {
		var r record
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
		return nil, fmt.Errorf("read which messages are drafts: %w", err)
	}
	s.tidied = now
	return records, nil
}

// put stores the message of a draft.
func (s *draftStore) put(ctx context.Context, draft string, r record) error {
	ctx, cancel := context.WithTimeout(ctx, draftCall)
	defer cancel()
	_, err := s.kernel.Commit(ctx, sdk.Put(s.prefix+draft, r))
	return err
}

// forget is the effect that removes the record of a draft.
func (s *draftStore) forget(draft string) sdk.Effect { return sdk.Delete(s.prefix + draft) }

// due reports whether old records should be looked for again.
func (s *draftStore) due(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.tidied) > tidyEvery
}
