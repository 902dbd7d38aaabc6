package chat

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// previewBytes is how much of its last line the list of conversations shows.
const previewBytes = 200

// find returns the line of an id; ok is false if there is none.
func (c *conversation) find(ctx context.Context, mine bool, id string) (l Line, ok bool, err error) {
	at, err := c.k.Get(ctx, idKey(c.user, c.name, mine, id))
	if err != nil || at.Version == 0 {
		return l, false, err
	}
	var seq int64
	if err := at.Decode(&seq); err != nil {
		return l, false, err
	}
	v, err := c.k.Get(ctx, lineKey(c.user, c.name, seq))
	if err != nil || v.Version == 0 || seq < c.now().First {
		return l, false, err
	}
	return l, true, c.decode(v, &l)
}

func (c *conversation) decode(v sdk.Value, l *Line) error {
	l.Conversation = c.name
	return v.Decode(l)
}

// now returns the head.
func (c *conversation) now() head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// add stores a line, and then shows it. The effects are committed with it, the first of
// them in front. writing is held.
func (c *conversation) add(ctx context.Context, l Line, first ...sdk.Effect) (Line, error) {
	if err := c.refresh(ctx); err != nil {
		return l, err
	}
	h := c.now()
	h.Last++
	l.Seq, l.Conversation, l.At = h.Last, c.name, c.chat.now().UTC()
	h.Updated, h.Preview = l.At, preview(l)
	if l.Mine {
		h.Unread, h.Read = 0, l.Seq
		if h.Title == "" && c.name != "" {
			h.Title = title(l)
		}
	} else {
		h.Unread++
	}
	effects := append(sdk.Effects(first),
		sdk.PutAt(lineKey(c.user, c.name, l.Seq), l, 0).Keep(contract.BlobsOf(l.Attachments)...),
		sdk.Put(idKey(c.user, c.name, l.Mine, l.ID), l.Seq), // over that of a line that was deleted
		sdk.Put(headKey(c.user, c.name), h))
	for _, a := range l.Attachments {
		if a.Blob != "" {
			effects = append(effects, sdk.Put(fileKey(c.user, a.Blob, c.name, l.Seq), a))
		}
	}
	for _, earlier := range c.events {
		if earlier.Seq >= h.First {
			effects = append(effects, sdk.Put(lineKey(c.user, c.name, earlier.Seq), earlier).
				Keep(contract.BlobsOf(earlier.Attachments)...))
		}
	}
	results, err := c.commit(ctx, effects...)
	if err != nil {
		return l, err
	}
	c.events = nil
	if l.Mine {
		for _, r := range results[:len(first)] { // a record comes before the message
			l.Event = cmp.Or(r.GetEventId(), l.Event)
		}
		if l.Event == "" {
			return l, c.takeBack(ctx, l)
		}
		c.events = append(c.events, l)
	}
	c.show(h, &l)
	return l, nil
}

// commit commits effects, also when the caller stops waiting. writing is held.
func (c *conversation) commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error) {
	results, err := c.k.Commit(context.WithoutCancel(ctx), effects...)
	c.stale = c.stale || err != nil
	return results, err
}

// refresh reads the head again if the last commit is in doubt. writing is held.
func (c *conversation) refresh(ctx context.Context) error {
	if !c.stale {
		return nil
	}
	v, err := c.k.Get(ctx, headKey(c.user, c.name))
	if err != nil {
		return err
	}
	h := head{First: 1, Purged: 1}
	if v.Version > 0 {
		if err := v.Decode(&h); err != nil {
			return err
		}
	}
	c.stale = false
	c.show(h, nil)
	return nil
}

// takeBack removes the line of a message that the kernel did not accept.
func (c *conversation) takeBack(ctx context.Context, l Line) error {
	effects := sdk.Effects{
		sdk.Delete(lineKey(c.user, c.name, l.Seq)), sdk.Delete(idKey(c.user, c.name, true, l.ID)),
		sdk.Put(headKey(c.user, c.name), c.now()),
	}
	for _, hash := range contract.BlobsOf(l.Attachments) {
		effects = append(effects, sdk.Delete(fileKey(c.user, hash, c.name, l.Seq)))
	}
	_, err := c.commit(ctx, effects...)
	return errors.Join(failf(contract.ErrDenied, "your account is not admitted: ask the owner for access"), err)
}

func preview(l Line) Line {
	l.Text = contract.Truncate(l.Text, previewBytes, "…")
	l.Attachments, l.Actions = nil, nil
	return l
}

// title is what a conversation is called after its first line.
func title(l Line) string {
	text := l.Text
	if strings.TrimSpace(text) == "" && len(l.Attachments) > 0 {
		text = l.Attachments[0].Name
	}
	return strings.Trim(words.Quote(text), "“”")
}

// Send implements sdk.Channel: the message is sent once its line is stored.
func (c *Chat) Send(ctx context.Context, m sdk.Message) (sdk.Receipt, error) {
	user := m.Conversation
	if user == "" {
		user = m.Owner
	}
	if user == "" {
		return sdk.Receipt{}, sdk.Drop(words.Sprintf("no one has opened the page yet, so there is no default recipient: " +
			"run `switchboard web`"))
	}
	to, err := c.conversation(ctx, user, m.Thread)
	if err != nil {
		if errors.Is(err, contract.ErrInvalid) {
			return sdk.Receipt{}, sdk.Drop(err.Error())
		}
		return sdk.Receipt{}, err
	}
	to.writing.Lock()
	defer to.writing.Unlock()
	receipt := sdk.Receipt{ProviderID: m.ID, Conversation: user, Thread: m.Thread}
	if _, sent, err := to.find(ctx, false, m.ID); err != nil || sent {
		return receipt, err
	}
	l := Line{
		ID: m.ID, Text: m.Unmarked, ReplyTo: m.ReplyTo, Draft: m.DraftID, Attachments: m.Attachments,
		Actions: m.Actions, Notice: m.Notice, Session: m.Session, Event: m.ID,
	}
	_, err = to.add(ctx, l)
	return receipt, err
}

// Draft implements sdk.Drafter.
func (c *Chat) Draft(ctx context.Context, d sdk.Draft) {
	if to, err := c.conversation(ctx, d.Conversation, d.Thread); err == nil {
		to.draft(Draft{ID: d.ID, ReplyTo: d.ReplyTo, Text: d.Text, Done: d.Done})
	}
}
