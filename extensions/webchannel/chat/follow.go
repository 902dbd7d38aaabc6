package chat

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

const (
	tailLines  = 64  // that followers are given without reading the store
	pageLines  = 100 // that are read at once
	endedKnown = 32  // drafts of which late updates are ignored
)

// follower waits for what happens in a conversation.
type follower struct {
	wake   chan struct{}
	drafts map[string]Draft // to be shown; only the newest of each
}

// show makes a new head known, and the line that was added with it. nil: some lines may
// have been added, or deleted.
func (c *conversation) show(h head, l *Line) {
	c.mu.Lock()
	c.head = h
	switch {
	case l == nil:
		c.tail = nil
	case len(c.followers) > 0:
		if c.tail = append(c.tail, *l); len(c.tail) > tailLines {
			c.tail = slices.Delete(c.tail, 0, len(c.tail)-tailLines)
		}
	}
	if l != nil && l.Draft != "" {
		c.endDraft(l.Draft)
	}
	c.wakeAll()
	c.mu.Unlock()
	c.changed(c.name)
}

// wakeAll wakes the followers; mu is held.
func (c *conversation) wakeAll() {
	for f := range c.followers {
		wake(f.wake)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// draft shows a draft, unless it has ended.
func (c *conversation) draft(d Draft) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.ended, d.ID) {
		return
	}
	if d.Done {
		c.endDraft(d.ID)
	} else {
		c.drafts[d.ID] = d
	}
	for f := range c.followers {
		f.drafts[d.ID] = d
	}
	c.wakeAll()
}

// endDraft forgets a draft; mu is held.
func (c *conversation) endDraft(id string) {
	delete(c.drafts, id)
	for f := range c.followers {
		delete(f.drafts, id)
	}
	if c.ended = append(c.ended, id); len(c.ended) > endedKnown {
		c.ended = slices.Delete(c.ended, 0, len(c.ended)-endedKnown)
	}
}

// Follow implements Conversations.
func (c *Chat) Follow(ctx context.Context, v door.Visitor, conversation string, after int64) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		to, err := c.conversation(ctx, v.User, conversation)
		if err != nil {
			yield(Frame{}, err)
			return
		}
		f := to.attach()
		defer to.detach(f)
		for {
			lines, drafts, err := to.news(ctx, f, &after)
			if err != nil {
				yield(Frame{}, err)
				return
			}
			for _, l := range lines {
				if !yield(Frame{Line: &l}, nil) {
					return
				}
			}
			for _, d := range drafts {
				if !yield(Frame{Draft: &d}, nil) {
					return
				}
			}
			if len(lines) > 0 {
				continue
			}
			select {
			case <-f.wake:
			case <-ctx.Done():
				return
			case <-to.k.Draining().Done():
				yield(Frame{}, errClosed)
				return
			}
		}
	}
}

func (c *conversation) attach() *follower {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &follower{wake: make(chan struct{}, 1), drafts: map[string]Draft{}}
	maps.Copy(f.drafts, c.drafts)
	c.followers[f] = struct{}{}
	return f
}

func (c *conversation) detach(f *follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.followers, f); len(c.followers) == 0 {
		c.tail = nil
	}
}

// news returns the next lines after a number, which it advances; when there are no more,
// the drafts.
func (c *conversation) news(ctx context.Context, f *follower, after *int64) (lines []Line, drafts []Draft, err error) {
	c.mu.Lock()
	h := c.head
	*after = max(*after, h.First-1)
	switch {
	case h.Last <= *after:
		for id, d := range f.drafts {
			drafts = append(drafts, d)
			delete(f.drafts, id)
		}
	case len(c.tail) > 0 && c.tail[0].Seq <= *after+1:
		lines = slices.Clone(c.tail[*after+1-c.tail[0].Seq:])
	}
	c.mu.Unlock()
	if len(lines) == 0 && h.Last > *after {
		if lines, err = c.read(ctx, *after, min(pageLines, h.Last-*after)); err != nil {
			return nil, nil, err
		}
		if len(lines) == 0 { // deleted meanwhile
			*after = h.Last
		}
	}
	if len(lines) > 0 {
		*after = lines[len(lines)-1].Seq
	}
	return lines, drafts, nil
}

// read reads at most n lines after a number from the store.
func (c *conversation) read(ctx context.Context, after, n int64) (lines []Line, err error) {
	for int64(len(lines)) < n {
		page, more, err := c.k.Page(ctx, linePrefix(c.user, c.name), lineKey(c.user, c.name, after), int(n)-len(lines))
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			var l Line
			if err := c.decode(v, &l); err != nil {
				return nil, err
			}
			lines, after = append(lines, l), l.Seq
		}
		if !more {
			break
		}
	}
	return lines, nil
}

// maxLines is the most lines that Lines returns.
const maxLines = 1000

// Lines implements Conversations.
func (c *Chat) Lines(
	ctx context.Context, v door.Visitor, conversation string, after, before int64, limit int,
) ([]Line, error) {
	from, err := c.conversation(ctx, v.User, conversation)
	if err != nil {
		return nil, err
	}
	h := from.now()
	if limit <= 0 || limit > maxLines {
		limit = maxLines
	}
	after = max(after, h.First-1)
	end := h.Last + 1
	if before > 0 {
		end = min(end, before)
		after = max(after, end-1-int64(limit)) // numbers have no gaps
	}
	n := min(int64(limit), end-1-after)
	if n <= 0 {
		return nil, nil
	}
	return from.read(ctx, after, n)
}

// watcher waits for changes of any conversation of a person.
type watcher struct {
	wake  chan struct{}
	names map[string]struct{}
}

func (p *person) changed(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watchers {
		w.names[name] = struct{}{}
		wake(w.wake)
	}
}

// Change is a conversation that has changed.
type Change struct {
	Conversation
	Deleted bool
}

// Watch yields each conversation of the visitor that changes, until ctx is done or the
// extension ends. Of several changes in a row it may yield the last one only.
func (c *Chat) Watch(ctx context.Context, v door.Visitor) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if v.User == "" {
			yield(Change{}, failf(contract.ErrDenied, "you are not logged in"))
			return
		}
		p, err := c.of(ctx, v.User)
		if err != nil {
			yield(Change{}, err)
			return
		}
		w := &watcher{wake: make(chan struct{}, 1), names: map[string]struct{}{}}
		p.mu.Lock()
		p.watchers[w] = struct{}{}
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			delete(p.watchers, w)
			p.mu.Unlock()
		}()
		for {
			for _, changed := range p.take(w) {
				h := changed.now()
				if !yield(Change{changed.describe(h), !h.exists()}, nil) {
					return
				}
			}
			select {
			case <-w.wake:
			case <-ctx.Done():
				return
			case <-p.k.Draining().Done():
				yield(Change{}, errClosed)
				return
			}
		}
	}
}

func (p *person) take(w *watcher) (changed []*conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name := range w.names {
		changed = append(changed, p.conversations[name])
	}
	clear(w.names)
	return changed
}

// describe is the conversation for people.
func (c *conversation) describe(h head) Conversation {
	h.Preview.Conversation = c.name
	return Conversation{Name: c.name, Title: h.Title, Last: h.Preview, Unread: h.Unread, Updated: h.Updated}
}
