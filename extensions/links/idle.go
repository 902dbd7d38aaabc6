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
	timer, daily := time.NewTimer(0), time.NewTicker(24*time.Hour)
	defer timer.Stop()
	defer daily.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-daily.C:
			if err := l.prune(ctx); err != nil {
				l.log.Warn("old exchanges could not be deleted", "error", err)
			}
			continue
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
	return l.endThose(ctx, l.look)
}

// look says whether it is time for an exchange to end, or sets when to look at it
// again.
func (l *links) look(ctx context.Context, x *exchange) (ending, error) {
	one := l.between(x.Initiator, x.Peer)
	switch now := l.now(); {
	case one == nil:
		return ending{outcome: unavailable, text: fmt.Sprintf("The configuration does not link %s and %s any more.", x.Initiator, x.Peer)}, nil
	case one.Problem != "":
		return ending{outcome: unavailable, text: one.Problem}, nil
	case x.idleAt().After(now):
		l.lookAt(x.idleAt())
		return ending{}, nil
	default:
		waits, err := l.waits(ctx, x, "")
		if err != nil {
			return ending{}, err
		}
		if waits { // for another exchange, which has an end of its own
			l.lookAt(now.Add(time.Duration(x.IdleSeconds) * time.Second))
			return ending{}, nil
		}
		return ending{outcome: idleEnd}, nil
	}
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
		if !x.Over || l.now().Sub(x.Ended) < kept || len(effects) > 500 {
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
