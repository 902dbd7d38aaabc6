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
	retryAfter = 5 * time.Second
	keep       = 30 * 24 * time.Hour // how long ended exchanges are kept
)

// run ends exchanges that are idle or whose link was removed. Memory holds only the
// time of the next sweep.
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
				l.log.Warn("cannot delete old exchanges", "error", err)
			}
			continue
		case <-l.wake:
		case <-timer.C:
			if err := l.sweep(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				l.log.Warn("cannot check open exchanges; will retry", "error", err, "retry_in", retryAfter.String())
				l.sweepAt(l.now().Add(retryAfter))
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

// sweep ends the exchanges that must end, and schedules the next sweep.
func (l *links) sweep(ctx context.Context) error {
	l.mu.Lock()
	l.next = time.Time{}
	l.mu.Unlock()
	return l.endMatching(ctx, l.checkEnd)
}

// checkEnd decides whether an exchange ends now, or schedules the next sweep.
func (l *links) checkEnd(ctx context.Context, x *exchange) (ending, error) {
	one := l.linkBetween(x.Initiator, x.Peer)
	switch now := l.now(); {
	case one == nil:
		text := fmt.Sprintf("The configuration no longer links %s and %s.", x.Initiator, x.Peer)
		return ending{outcome: unavailable, text: text}, nil
	case one.Problem != "":
		return ending{outcome: unavailable, text: one.Problem}, nil
	case x.idleAt().After(now):
		l.sweepAt(x.idleAt())
		return ending{}, nil
	default:
		waits, err := l.hasOpenExchanges(ctx, x, "")
		if err != nil {
			return ending{}, err
		}
		if waits { // for another exchange, which ends by itself
			l.sweepAt(now.Add(time.Duration(x.IdleSeconds) * time.Second))
			return ending{}, nil
		}
		return ending{outcome: idle}, nil
	}
}

// prune deletes old exchanges.
func (l *links) prune(ctx context.Context) error {
	var effects sdk.Effects
	err := l.k.Scan(ctx, exchangePrefix, func(v sdk.Value) error {
		x, err := decode(v)
		if err != nil {
			l.log.Error("cannot decode an exchange", "key", v.Key, "error", err)
			return nil
		}
		if !x.Over || l.now().Sub(x.Ended) < keep || len(effects) > 500 {
			return nil
		}
		effects = append(effects, sdk.DeleteAt(v.Key, v.Version))
		return l.k.Scan(ctx, messagePrefix+x.ID+"/", func(s sdk.Value) error {
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

// idOf returns the id in the key of an exchange.
func idOf(key string) string { return strings.TrimPrefix(key, exchangePrefix) }
