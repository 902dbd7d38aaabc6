package slackchannel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// maxBatch bounds the envelopes of one commit.
const maxBatch = 64

// receiver stores what Slack sends.
type receiver struct {
	*activation
	me       *slack.AuthTestResponse
	inbox    chan envelope
	names    *names
	threads  *threads
	backlog  *backlog
	presses  *presses
	failing  atomic.Bool // messages cannot be stored
	online   atomic.Bool // a connection is open
	gaps     chan time.Time
	caughtUp func()        // closes started
	started  chan struct{} // closed when what was missed before the start is stored
	running  sync.WaitGroup
}

func newReceiver(ctx context.Context, a *activation, me *slack.AuthTestResponse) *receiver {
	r := &receiver{
		activation: a, me: me, inbox: make(chan envelope, maxBatch), names: newNames(a.api, me.UserID),
		gaps: make(chan time.Time, 1), started: make(chan struct{}),
	}
	r.caughtUp = sync.OnceFunc(func() { close(r.started) })
	r.threads = &threads{kernel: a.kernel, prefix: "thread/" + me.TeamID + "/", known: map[string]bool{}}
	r.presses = &presses{activation: a, prefix: "pressed/" + me.TeamID + "/", running: &r.running}
	r.backlog = newBacklog(ctx, a, me.TeamID, r.presses)
	return r
}

// connected reports that the channel is ready.
func (r *receiver) connected() {
	if !r.failing.Load() {
		r.kernel.SetReadiness(sdk.Ready, "@"+r.me.User+" ("+r.me.Team+")")
	}
}

// received is an envelope, and what it says.
type received struct {
	envelope
	message *pendingMessage // nil: nothing to publish
	effects sdk.Effects     // to commit with it
	then    func(context.Context)
}

// receive stores envelopes and acknowledges them until ctx ends. What was missed before
// the start comes first, if it can be read within the time that Slack waits.
func (r *receiver) receive(ctx context.Context) {
	first := time.NewTimer(r.set.times.first)
	select {
	case <-r.started:
	case <-first.C:
	case <-ctx.Done():
	}
	first.Stop()
	for {
		var batch []envelope
		select {
		case e := <-r.inbox:
			batch = append(batch, e)
		case <-ctx.Done():
			return
		}
		for len(batch) < maxBatch {
			select {
			case e := <-r.inbox:
				batch = append(batch, e)
				continue
			default:
			}
			break
		}
		r.accept(ctx, batch)
	}
}

// accept stores a batch and acknowledges it.
func (r *receiver) accept(ctx context.Context, batch []envelope) {
	all := make([]received, len(batch))
	lookUp, cancel := context.WithTimeout(ctx, r.set.times.lookUp)
	for i, e := range batch {
		all[i] = r.read(lookUp, e)
	}
	cancel()
	if _, err := r.storeAll(ctx, all); err != nil {
		return // Slack sends them again
	}
	for _, one := range all {
		if err := one.from.acknowledge(one.ID); err != nil {
			r.log.Debug("acknowledge an envelope; Slack sends it again", "envelope", one.ID, "error", err)
		}
		if one.then != nil {
			r.running.Go(func() { one.then(ctx) })
		}
	}
}

// storeAll stores a batch, without what can never be stored, and returns the results of
// the last commit. An error means that ctx has ended.
func (r *receiver) storeAll(ctx context.Context, all []received) (results []*busv1.EffectResult, err error) {
	if results, err = r.store(ctx, all); sdk.IsPermanent(err) {
		for i := range all { // store the others one by one
			if results, err = r.store(ctx, all[i:i+1]); sdk.IsPermanent(err) {
				r.log.Error("store a message; skipping it", "envelope", all[i].ID, "error", err)
			}
		}
	}
	return results, ctx.Err()
}

// store commits a batch. What has files to download, and what follows it in its
// conversation, is stored for the backlog. It retries until it succeeds, fails permanently,
// or ctx has ended.
func (r *receiver) store(ctx context.Context, batch []received) ([]*busv1.EffectResult, error) {
	var effects sdk.Effects
	var waiting []*pendingMessage
	published := map[int]*pendingMessage{} // by their effects
	waits := map[string]bool{}
	for _, one := range batch {
		effects = append(effects, one.effects...)
		m := one.message
		if m == nil {
			continue
		}
		c := m.conversation()
		if waits[c] = waits[c] || len(m.Files) > 0 || r.backlog.holds(c); waits[c] {
			waiting = append(waiting, m)
			effects = append(effects, r.backlog.put(m))
		} else {
			effects = append(effects, r.presses.publish(m)...)
			published[len(effects)-1] = m
		}
	}
	if len(effects) == 0 {
		return nil, nil
	}
	for n := 1; ; n++ {
		results, err := r.kernel.Commit(ctx, effects...)
		if err == nil {
			if r.failing.Swap(false) {
				r.connected()
			}
			r.backlog.add(waiting)
			for i, m := range published {
				r.presses.published(ctx, m, results[i])
			}
			return results, nil
		}
		if ctx.Err() != nil || sdk.IsPermanent(err) {
			return nil, err
		}
		r.log.Warn("store messages; Slack sends them again until they are stored", "error", err)
		r.failing.Store(true)
		r.kernel.SetReadiness(sdk.Degraded, words.Sprintf("new messages cannot be stored and wait at Slack: %s", err))
		if !pause.For(ctx, pause.Backoff(n)) {
			return nil, err
		}
	}
}
