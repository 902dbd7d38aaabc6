package discordchannel

import (
	"context"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/sdk/pause"
)

const (
	// catchUpOverlap is read again, because the clocks differ.
	catchUpOverlap = 5 * time.Minute
	// maxMissed bounds the messages of one channel that are read after an outage.
	maxMissed = 10_000
)

// catchUp publishes what the known conversations have had since a time. What was
// published before is recognized by its dedupe key. The stored position stays, so a
// process that is killed meanwhile does all of it again.
func (s *session) catchUp(ctx context.Context, since time.Time) error {
	for _, place := range s.places.all() {
		if err := s.catchUpWith(ctx, place, idAt(since.Add(-catchUpOverlap))); err != nil {
			return err
		}
	}
	return nil
}

// catchUpWith publishes the messages of a channel after one, all together, so that an
// agent answers them together.
func (s *session) catchUpWith(ctx context.Context, place *place, after string) error {
	var missed []*pendingMessage
	for n, failures := 0, 0; n < maxMissed; {
		page, err := s.api.history(ctx, place.ID, after)
		if err != nil {
			kind, wait := classify(err)
			switch {
			case kind == badTokenKind:
				return err
			case kind == refused:
				s.log.Info("a channel can't be read any more", "channel", place.ID, "error", s.api.redact(err))
				s.places.forget(ctx, place.ID)
				return nil
			case kind != limited:
				failures++
				wait = pause.Backoff(failures)
			}
			if !pause.For(ctx, wait) {
				return ctx.Err()
			}
			continue
		}
		slices.Reverse(page) // oldest first
		for _, raw := range page {
			m, err := decodeMessage(raw)
			if err != nil {
				s.log.Error("decode a message of a history; skipping it", "channel", place.ID, "error", err)
				continue
			}
			after = m.ID
			if place.Server {
				m.GuildID = "of this channel" // a history leaves it out
			}
			one, err := s.parseMessage(ctx, m, false)
			if err != nil {
				return err
			}
			if one != nil {
				s.order = max(s.order+1, time.Now().UnixNano())
				one.Order = s.order
				missed = append(missed, one)
			}
		}
		if n += len(page); len(page) < historyPage {
			break
		}
		if n >= maxMissed {
			s.log.Warn("a channel has too many messages since the last connection; its newest are skipped",
				"channel", place.ID, "read", n)
		}
	}
	if len(missed) == 0 {
		return nil
	}
	s.backlog.fetchNow(ctx, missed)
	for part := range slices.Chunk(missed, maxBatch) {
		if err := s.store(ctx, part, s.position); err != nil {
			return err
		}
	}
	return nil
}
