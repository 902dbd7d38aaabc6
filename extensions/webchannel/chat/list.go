package chat

import (
	"cmp"
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk"
)

// List implements Conversations. The main conversation is among them before its first line.
func (c *Chat) List(ctx context.Context, v door.Visitor) ([]Conversation, error) {
	if _, err := c.conversation(ctx, v.User, ""); err != nil {
		return nil, err
	}
	p, err := c.of(ctx, v.User)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]Conversation, 0, len(p.conversations))
	for name, found := range p.conversations {
		if h := found.now(); h.exists() || name == "" {
			list = append(list, found.describe(h))
		}
	}
	slices.SortFunc(list, func(a, b Conversation) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Read implements Conversations.
func (c *Chat) Read(ctx context.Context, v door.Visitor, conversation string, seq int64) error {
	in, err := c.conversation(ctx, v.User, conversation)
	if err != nil {
		return err
	}
	in.writing.Lock()
	defer in.writing.Unlock()
	if err := in.refresh(ctx); err != nil {
		return err
	}
	h := in.now()
	if seq = min(seq, h.Last); seq <= h.Read {
		return nil
	}
	h.Read, h.Unread = seq, 0
	for after := seq; after < h.Last; {
		later, err := in.read(ctx, after, min(pageLines, h.Last-after))
		if err != nil {
			return err
		}
		if len(later) == 0 {
			break
		}
		for _, l := range later {
			if after = l.Seq; !l.Mine {
				h.Unread++
			}
		}
	}
	return in.put(ctx, h)
}

// put stores a head, and makes it known. writing is held.
func (c *conversation) put(ctx context.Context, h head) error {
	if _, err := c.commit(ctx, sdk.Put(headKey(c.user, c.name), h)); err != nil {
		return err
	}
	before := c.now()
	if h.First != before.First {
		c.show(h, nil)
		return nil
	}
	c.mu.Lock()
	c.head = h
	c.mu.Unlock()
	c.changed(c.name)
	return nil
}

// Delete implements Conversations. The lines are gone when it returns, and their space
// soon after.
func (c *Chat) Delete(ctx context.Context, v door.Visitor, conversation string) error {
	in, err := c.conversation(ctx, v.User, conversation)
	if err != nil {
		return err
	}
	in.writing.Lock()
	defer in.writing.Unlock()
	if err := in.refresh(ctx); err != nil {
		return err
	}
	h := in.now()
	if !h.exists() {
		return nil
	}
	h = head{First: h.Last + 1, Last: h.Last, Read: h.Last, Updated: c.now().UTC(), Purged: h.Purged}
	if err := in.put(ctx, h); err != nil {
		return err
	}
	in.purge()
	return nil
}

// purgeAtOnce is how many effects a commit has that removes deleted lines, or a few more.
const purgeAtOnce = 1000

// purge removes deleted lines from the store, in steps: what is left when the process ends
// is removed when the conversations are loaded.
func (c *conversation) purge() {
	if h := c.now(); h.Purged >= h.First {
		return
	}
	c.chat.work.Go(func() {
		ctx := c.k.Draining()
		if err := c.purgeLines(ctx); err != nil && ctx.Err() == nil {
			c.k.Log().Warn("remove the lines of a deleted conversation: they are removed after the next start", "error", err)
		}
	})
}

func (c *conversation) purgeLines(ctx context.Context) error {
	for {
		h := c.now()
		if h.Purged >= h.First {
			return nil
		}
		lines, err := c.read(ctx, h.Purged-1, min(pageLines, h.First-h.Purged))
		if err != nil {
			return err
		}
		var effects sdk.Effects
		done := h.First
		for _, l := range lines {
			if l.Seq >= h.First {
				break
			}
			if len(effects) > purgeAtOnce {
				done = l.Seq
				break
			}
			effects = append(effects, sdk.Delete(lineKey(c.user, c.name, l.Seq)))
			effects = append(effects, sdk.Delete(idKey(c.user, c.name, l.Mine, l.ID)))
			for _, hash := range contract.BlobsOf(l.Attachments) {
				effects = append(effects, sdk.Delete(fileKey(c.user, hash, c.name, l.Seq)))
			}
			done = l.Seq + 1
		}
		if err := c.purged(ctx, done, effects); err != nil {
			return err
		}
	}
}

// purged commits one step, together with how far it has come.
func (c *conversation) purged(ctx context.Context, done int64, effects sdk.Effects) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := c.refresh(ctx); err != nil {
		return err
	}
	h := c.now()
	h.Purged = max(h.Purged, done)
	if _, err := c.commit(ctx, append(effects, sdk.Put(headKey(c.user, c.name), h))...); err != nil {
		return err
	}
	c.mu.Lock()
	c.head = h
	c.mu.Unlock()
	return nil
}
