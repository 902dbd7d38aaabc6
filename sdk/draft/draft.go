// Package draft shows the unfinished text of a turn in a message that grows. It is for
// channels whose drafts are messages of their platform.
//
// A turn has one draft. It has at most one running request, for its newest text, and
// only if the platform has spare budget; updates in between are skipped. Its message is
// stored after the platform accepted it, before its first edit, and until the final text
// was acknowledged, so the final text finds its message even after a crash. If the
// process is killed between the acceptance and the store, the unfinished message is left
// over.
//
// In a cluster, a process of another node may still run and edit the message that it sent,
// until its lease ends. So a draft of another node is not continued: its message is deleted,
// and the turn goes on in a new one, which the other process does not know.
package draft

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// Delay is how long a turn must run before its draft is shown: a quick answer
	// needs none.
	Delay = time.Second
	// MinText is the least text of a draft, in characters.
	MinText = 40
	// MaxEnded bounds the ended drafts that are remembered.
	MaxEnded = 1024
	// Mark ends an unfinished text.
	Mark = " ▍"
	// requestTimeout bounds one request, which a final text may wait for; removeTimeout
	// that which a process that ends may wait for.
	requestTimeout = 10 * time.Second
	removeTimeout  = 2 * time.Second
	// repeatAfter is the pause after a failed request.
	repeatAfter = 3 * time.Second
)

// Message identifies the message of a draft at the platform, as it is stored in JSON. The
// zero value is no message.
type Message interface {
	comparable
	SentAt() time.Time
}

// Platform shows drafts of a channel. A is an address, M a message.
type Platform[A any, M Message] interface {
	// Reserve takes a request out of the spare budget; leave is called when the request
	// has ended. Without spare budget leave is nil, and wait the least time until there
	// may be some.
	Reserve(to A) (leave func(), wait time.Duration)
	// Post sends the message of a draft, Edit changes it. plain: without formatting.
	Post(ctx context.Context, to A, replyTo, text string, plain bool) (M, error)
	Edit(ctx context.Context, to A, message M, text string, plain bool) error
	// Remove deletes a message, and waits for its budget. It succeeds if the message is gone
	// or the platform refuses for good; other errors are outcomes of package sdk.
	Remove(ctx context.Context, message M) error
	// Failed decides what follows an error of Post or Edit; posted: the draft has a
	// message.
	Failed(to A, posted bool, err error) Failure
}

// Failure is what follows a failed request.
type Failure int

const (
	// Mute ends the draft: its message stays as it is until the final text.
	Mute Failure = iota
	// Wait repeats the request as soon as Reserve allows it.
	Wait
	// Repeat repeats the request after a pause.
	Repeat
	// Plain repeats the request without formatting.
	Plain
)

// Drafts are the drafts of one activation of a channel.
type Drafts[A any, M Message] struct {
	ctx      context.Context
	platform Platform[A, M]
	store    *store[M]
	log      hclog.Logger

	mu      sync.Mutex
	byID    map[string]*draft[A, M]
	ended   []string // ids of delivered ones, oldest first
	stopped bool
	calls   sync.WaitGroup
}

// draft is the text of one turn.
type draft[A any, M Message] struct {
	id      string
	to      A
	replyTo string
	began   time.Time

	text         string // the newest text
	shown        string // text of the message
	unknownState bool   // the text of the message is unknown

	message M
	other   M             // the message of another node, which is to be deleted
	keys    []string      // where the store may have its messages
	plain   bool          // the platform refused its formatting
	muted   bool          // not updated anymore
	final   bool          // its turn has ended
	settled bool          // the final text was delivered
	request chan struct{} // closed at the end of the running request; nil: none
	timer   *time.Timer   // calls refresh
}

// New returns the drafts of an account, with those of an earlier process. Requests end
// with ctx.
func New[A any, M Message](
	ctx context.Context, platform Platform[A, M], kernel Kernel, account string,
) (*Drafts[A, M], error) {
	d := &Drafts[A, M]{ctx: ctx, platform: platform, log: kernel.Log(), store: newStore[M](kernel, account),
		byID: map[string]*draft[A, M]{}}
	all, err := d.store.load(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		f := &draft[A, M]{id: s.draft, began: s.message.SentAt(), keys: []string{s.key}}
		if s.node == "" || s.node == d.store.node {
			f.message, f.unknownState = s.message, true
		} else {
			f.other = s.message
		}
		d.byID[s.draft] = f
	}
	return d, nil
}

// Update takes the newest text of a draft, and reports whether its turn is still
// running. It never blocks.
func (d *Drafts[A, M]) Update(u sdk.Draft, to A) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[u.ID]
	switch {
	case d.stopped || f != nil && f.final:
		return false
	case u.ID == "" || u.Done && f == nil:
		return !u.Done
	case f == nil:
		f = &draft[A, M]{id: u.ID, began: time.Now()}
		d.byID[u.ID] = f
	}
	f.to, f.replyTo = to, u.ReplyTo
	if u.Done {
		f.stopTimer()
		return false
	}
	f.text = u.Text
	d.refresh(f)
	return true
}

func (f *draft[A, M]) posted() bool { return isMessage(f.message) }

func isMessage[M Message](m M) bool { return m != none[M]() }

// none is no message.
func none[M Message]() (m M) { return m }

// refresh shows the newest text if it has changed and there is spare budget; without
// budget it runs again later. mu is held.
func (d *Drafts[A, M]) refresh(f *draft[A, M]) {
	text := strings.TrimSpace(f.text)
	if d.stopped || f.final || f.muted || f.request != nil || f.timer != nil || text == "" ||
		text == f.shown && !f.unknownState {
		return
	}
	if !f.posted() {
		if len([]rune(text)) < MinText {
			return
		}
		if early := Delay - time.Since(f.began); early > 0 {
			d.refreshAfter(f, early)
			return
		}
	}
	request := func() { d.removeOther(f) }
	if !isMessage(f.other) {
		leave, wait := d.platform.Reserve(f.to)
		if leave == nil {
			d.refreshAfter(f, wait)
			return
		}
		request = func() {
			sent := d.show(f, text)
			leave()
			if sent {
				d.record(f)
			}
		}
	}
	f.request = make(chan struct{})
	d.calls.Go(func() {
		request()
		d.mu.Lock()
		defer d.mu.Unlock()
		close(f.request)
		f.request = nil
		d.refresh(f)
	})
}

// refreshAfter calls refresh after a time; mu is held.
func (d *Drafts[A, M]) refreshAfter(f *draft[A, M], after time.Duration) {
	f.timer = time.AfterFunc(after, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if f.timer != nil {
			f.timer = nil
			d.refresh(f)
		}
	})
}

func (f *draft[A, M]) stopTimer() {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
}

// removeOther deletes the message of another node.
func (d *Drafts[A, M]) removeOther(f *draft[A, M]) {
	ctx, cancel := context.WithTimeout(d.ctx, requestTimeout)
	defer cancel()
	err := d.platform.Remove(ctx, f.other)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.refreshAfter(f, repeatAfter)
		return
	}
	f.other = none[M]()
}

// show sends or edits the message of a draft, and reports whether it was sent.
func (d *Drafts[A, M]) show(f *draft[A, M], text string) (sent bool) {
	d.mu.Lock()
	to, replyTo, message, posted, plain := f.to, f.replyTo, f.message, f.posted(), f.plain
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(d.ctx, requestTimeout)
	defer cancel()
	var err error
	if posted {
		err = d.platform.Edit(ctx, to, message, text, plain)
	} else {
		message, err = d.platform.Post(ctx, to, replyTo, text, plain)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		f.message, f.shown, f.unknownState = message, text, false
		return !posted
	}
	f.unknownState = posted
	switch next := d.platform.Failed(to, posted, err); {
	case next == Plain && !plain:
		f.plain = true
	case next == Wait:
	case next == Repeat:
		d.refreshAfter(f, repeatAfter)
	default:
		f.muted = true
	}
	return false
}

// record stores the message of a draft, and once a day deletes old drafts. In a cluster, a
// message that can't be stored is deleted: another node may have taken over, and does not
// know it.
func (d *Drafts[A, M]) record(f *draft[A, M]) {
	d.mu.Lock()
	message, former, key := f.message, f.keys, d.store.key(f.id)
	f.keys = append(slices.Clone(former), key) // also if the outcome is unknown
	d.mu.Unlock()
	if err := d.store.save(d.ctx, key, message, former); err != nil {
		d.log.Warn("store the message of a draft; it may be left over after a crash", "draft", f.id, "error", err)
		if d.store.node != "" {
			d.takeBack(f, message)
		}
		return
	}
	now := time.Now()
	if !d.store.pruneDue(now) {
		return
	}
	if _, err := d.store.load(d.ctx); err != nil {
		d.log.Warn("delete old drafts", "error", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, old := range d.byID {
		if now.Sub(old.began) > MaxAge && old.request == nil {
			old.stopTimer()
			delete(d.byID, id)
		}
	}
}

// takeBack deletes the message of a draft and ends the draft.
func (d *Drafts[A, M]) takeBack(f *draft[A, M], message M) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), removeTimeout)
	defer cancel()
	if d.platform.Remove(ctx, message) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f.message, f.muted = none[M](), true
}

// Finish ends a draft and returns its message. It waits for the running request, whose
// text must not arrive after the final one, and deletes the message of another node. Errors
// are outcomes of package sdk.
func (d *Drafts[A, M]) Finish(ctx context.Context, id string) (message M, err error) {
	if id == "" {
		return message, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[id]
	if f == nil {
		f = &draft[A, M]{id: id, began: time.Now()}
		d.byID[id] = f
	}
	f.final = true
	f.stopTimer()
	for underway := f.request; underway != nil; underway = f.request {
		d.mu.Unlock()
		ended := waitFor(ctx, underway)
		d.mu.Lock()
		if !ended {
			return message, sdk.Retry(time.Second, context.Cause(ctx))
		}
	}
	if other := f.other; isMessage(other) {
		d.mu.Unlock()
		err := d.platform.Remove(ctx, other)
		d.mu.Lock()
		if err != nil {
			return message, err
		}
		f.other = none[M]()
	}
	return f.message, nil
}

// Remove ends a draft that has no final text, and deletes its message.
func (d *Drafts[A, M]) Remove(ctx context.Context, id string) error {
	message, err := d.Finish(ctx, id)
	if err == nil && isMessage(message) {
		err = d.platform.Remove(ctx, message)
	}
	if err != nil {
		return err
	}
	effects := d.Delivered(id)
	if len(effects) == 0 {
		return nil
	}
	if _, err := d.store.kernel.Commit(ctx, effects...); err != nil {
		return fmt.Errorf("delete draft %s: %w", id, err)
	}
	return nil
}

func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// Delivered is called after the final text of a draft was delivered, and returns the
// effects to commit. The draft is remembered for a while: its late updates are ignored,
// and if the commit fails, the repeated final text finds its message.
func (d *Drafts[A, M]) Delivered(id string) sdk.Effects {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.byID[id]
	if f == nil {
		return nil
	}
	if !f.settled {
		f.settled = true
		if d.ended = append(d.ended, id); len(d.ended) > MaxEnded {
			delete(d.byID, d.ended[0])
			d.ended = d.ended[1:]
		}
	}
	return remove(f.keys)
}

// Len returns how many drafts are remembered.
func (d *Drafts[A, M]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.byID)
}

// Stop ends all drafts and waits for their requests, whose context has ended.
func (d *Drafts[A, M]) Stop() {
	d.mu.Lock()
	d.stopped = true
	for _, f := range d.byID {
		f.stopTimer()
	}
	d.mu.Unlock()
	d.calls.Wait()
}
