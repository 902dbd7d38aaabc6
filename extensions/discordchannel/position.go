package discordchannel

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// position is the stored place in the events: a session and the number of its last event
// that is stored.
type position struct {
	Session     string `json:"session,omitempty"` // empty: a new one begins
	ResumeURL   string `json:"resume_url,omitempty"`
	Seq         int64  `json:"seq,omitempty"`
	Application string `json:"application,omitempty"`
	// At is until when all messages are stored, in Unix seconds; 0: nothing was received
	// yet.
	At int64 `json:"at,omitempty"`
}

// discordEpoch is the time from which ids count.
const discordEpoch = 1420070400000 // Unix milliseconds

// idAt returns an id that is older than those of messages after a time.
func idAt(t time.Time) string {
	return strconv.FormatInt(max(t.UnixMilli()-discordEpoch, 0)<<22, 10)
}

// timeOf returns the time of an id; the zero time: it is none.
func timeOf(id string) time.Time {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n>>22 + discordEpoch)
}

// load reads what is stored, with retries; false: ctx has ended.
func (s *session) load(ctx context.Context, read func(context.Context) error) bool {
	for n := 1; ; n++ {
		err := read(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.kernel.SetReadiness(sdk.Offline, words.Sprintf("read the position in the bot's messages: %s", err))
		if !pause.For(ctx, pause.Backoff(n)) {
			return false
		}
	}
}

func (s *session) read(ctx context.Context) error {
	v, err := s.kernel.Get(ctx, s.key)
	if err != nil {
		return err
	}
	s.position, s.version = position{}, v.Version
	if v.Version == 0 {
		return nil
	}
	if err := v.Decode(&s.position); err != nil {
		s.log.Error("decode the stored position; beginning a new session", "error", err)
	}
	s.stored = s.position
	return nil
}

// commit stores a position with effects. It retries until it succeeds, fails permanently,
// or ctx has ended. The first results are those of the effects.
func (s *session) commit(ctx context.Context, next position, effects func() sdk.Effects,
) ([]*busv1.EffectResult, error) {
	for n := 1; ; n++ {
		results, err := s.kernel.Commit(ctx, append(effects(), sdk.PutAt(s.key, next, s.version))...)
		switch {
		case err == nil:
			if n > 1 {
				s.ready()
			}
			s.position, s.stored, s.version = next, next, results[len(results)-1].GetVersion()
			return results, nil
		case ctx.Err() != nil || sdk.IsPermanent(err) || errors.Is(err, contract.ErrNotFound):
			return nil, err
		case errors.Is(err, contract.ErrConflict):
			// Only the version is of interest: this process has the session.
			v, err := s.kernel.Get(ctx, s.key)
			if err == nil {
				s.version = v.Version
				continue
			}
		}
		s.log.Warn("store messages; Discord keeps them until they are stored", "error", err)
		s.kernel.SetReadiness(sdk.Degraded, words.Sprintf("new messages cannot be stored and wait at Discord: %s", err))
		if !pause.For(ctx, pause.Backoff(n)) {
			return nil, err
		}
	}
}
