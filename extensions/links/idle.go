package links

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	again = 5 * time.Second     // after something failed
	kept  = 30 * 24 * time.Hour // how long exchanges that are over are shown
)

// run ends exchanges that are idle or whose link is gone. What is stored is the
// truth; memory holds only when to look at it next.
func (l *links) run(ctx context.Context) error {
	if err := l.prune(ctx); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		case <-timer.C:
			if err := l.sweep(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				l.log.Warn("open exchanges could not be looked at", "error", err, "again_in", again.String())
				l.lookAt(l.now().Add(again))
			}
		}
		l.mu.Lock()
		next := l.next
		l.mu.Unlock()
		if next.IsZero() {
			timer.Stop()
			continue
		}
		timer.Reset(max(0, next.Sub(l.now())))
	}
}

// sweep ends what is to end, and sets when to look again.
func (l *links) sweep(ctx context.Context) error {
	l.mu.Lock()
	l.next = time.Time{}
	l.mu.Unlock()
	var ids []string
	err := l.k.Scan(ctx, openPrefix, func(v sdk.Value) error {
		var id string
		if err := v.Decode(&id); err != nil {
			return err
		}
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the open exchanges: %w", err)
	}
	var failed error
	for _, id := range ids {
		err := l.look(ctx, id)
		for tries := 0; errors.Is(err, contract.ErrConflict) && tries < 10; tries++ {
			err = l.look(ctx, id)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("exchange %s: %w", id, err))
		}
	}
	return failed
}

// look ends one exchange if it is time, and sets when to look at it again.
func (l *links) look(ctx context.Context, id string) error {
	x, err := l.load(ctx, id)
	if err != nil || x == nil || x.Over {
		return err
	}
	outcome, why := "", ""
	one := l.between(x.Initiator, x.Peer)
	switch now := l.now(); {
	case one == nil:
		outcome, why = unavailable, fmt.Sprintf("The configuration does not link %s and %s any more.", x.Initiator, x.Peer)
	case one.Problem != "":
		outcome, why = unavailable, one.Problem
	case x.idleAt().After(now):
		l.lookAt(x.idleAt())
		return nil
	default:
		for _, agent := range []string{x.Initiator, x.Peer} {
			waits, err := l.children(ctx, x, one.sessions[agent])
			if err != nil {
				return err
			}
			if waits { // for another exchange, which has an end of its own
				l.lookAt(now.Add(time.Duration(x.IdleSeconds) * time.Second))
				return nil
			}
		}
		outcome = idleEnd
	}
	effects, err := l.finish(ctx, x, outcome, "", why)
	if err != nil {
		return err
	}
	_, err = l.k.Commit(ctx, effects...)
	if errors.Is(err, contract.ErrNotFound) || errors.Is(err, contract.ErrDenied) || errors.Is(err, contract.ErrInvalid) {
		l.log.Error("an exchange is over, and nobody can be told: the sessions are gone", "exchange", x.ID, "error", err)
		x.Result = ""
		_, err = l.k.Commit(ctx, sdk.Delete(openKey(x.From, x.Peer)), x.put())
	}
	return err
}

// prune deletes what nobody looks at any more.
func (l *links) prune(ctx context.Context) error {
	var effects sdk.Effects
	err := l.k.Scan(ctx, exchangePrefix, func(v sdk.Value) error {
		x, err := decode(v)
		if err != nil {
			l.log.Error("an exchange cannot be read", "key", v.Key, "error", err)
			return nil
		}
		if !x.Over || len(x.Owed) > 0 || l.now().Sub(x.Ended) < kept || len(effects) > 500 {
			return nil
		}
		effects = append(effects, sdk.DeleteAt(v.Key, v.Version))
		return l.k.Scan(ctx, saidPrefix+x.ID+"/", func(s sdk.Value) error {
			effects = append(effects, sdk.Delete(s.Key))
			return nil
		})
	})
	if err != nil || len(effects) == 0 {
		return err
	}
	if _, err := l.k.Commit(ctx, effects...); err != nil && !errors.Is(err, contract.ErrConflict) {
		return fmt.Errorf("delete old exchanges: %w", err)
	}
	return nil
}

// idOf is the id in the key of an exchange.
func idOf(key string) string { return strings.TrimPrefix(key, exchangePrefix) }
