package tasks

import (
	"context"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// notice is the newest notice to main.
type notice struct {
	Number      int64 `json:"number"`
	Uncollected int   `json:"named"` // results in it that are not collected yet
}

// queueNotice records a result that the next notice names; main gets it when idle.
func (c *change) queueNotice(root, seq, name string) {
	c.write(unnoticedOf(root)+seq, &name)
	c.effect(sdk.WhenIdle(root))
}

const (
	maxNoticed = 500 // results in one notice
	maxShown   = 50  // whose names are written out
)

// idle sends main, which was idle a moment ago, a notice of the results that no
// notice has named. If a person stopped main, the notice starts no turn.
func (t *tasks) idle(ctx context.Context, e contract.SessionIdle) (sdk.Effects, error) {
	c, root := t.change(ctx, "idle:"+e.Session), e.Session
	page, more, err := c.k.Page(ctx, unnoticedOf(root), "", maxNoticed)
	if err != nil {
		return nil, fmt.Errorf("read the results of %s: %w", root, err)
	}
	if len(page) == 0 {
		return nil, nil
	}
	n, err := readOrNew[notice](c, noticePrefix+root)
	if err != nil {
		return nil, err
	}
	n.Number, n.Uncollected = n.Number+1, len(page)
	c.write(noticePrefix+root, n)
	names := make([]string, 0, len(page))
	for _, v := range page {
		name, err := track[string](c, v)
		if err != nil {
			return nil, err
		}
		names = append(names, *name)
		c.write(v.Key, nil)
		c.effect(sdk.Put(noticedOf(root)+lastOf(v.Key), n.Number))
	}
	kind := contract.InputNotice
	if e.Stopped { // main reads it in its next turn
		kind = contract.InputRecord
	}
	c.effect(sdk.Raw(&busv1.Input{
		Session: root, Kind: kind, Sender: ID,
		DedupeKey: noticeDedupe(root, n.Number), IfExists: true,
		Text: "Finished: " + words.List("", names, maxShown) + ". receive or check returns the results.",
	}))
	if more {
		c.effect(sdk.WhenIdle(root))
	}
	return c.effects(), nil
}

func noticeDedupe(root string, number int64) string { return fmt.Sprintf("notice:%s:%d", root, number) }

// dropNotices removes collected results from notices. A notice whose results are
// all collected is withdrawn.
func (c *change) dropNotices(root string, items []inboxItem) error {
	for _, item := range items {
		if item.Result == nil {
			continue
		}
		seq := lastOf(item.key)
		if unnoticed, err := read[string](c, unnoticedOf(root)+seq); err != nil {
			return err
		} else if unnoticed != nil {
			c.write(unnoticedOf(root)+seq, nil)
			continue
		}
		if err := c.dropFromNotice(root, seq); err != nil {
			return err
		}
	}
	return nil
}

// dropFromNotice removes a collected result from the notice that named it.
func (c *change) dropFromNotice(root, seq string) error {
	in, err := read[int64](c, noticedOf(root)+seq)
	if err != nil || in == nil {
		return err
	}
	c.write(noticedOf(root)+seq, nil)
	n, err := read[notice](c, noticePrefix+root)
	if err != nil || n == nil || n.Number != *in {
		return err
	}
	if n.Uncollected--; n.Uncollected == 0 {
		c.effect(sdk.Withdraw(noticeDedupe(root, n.Number)))
	}
	c.write(noticePrefix+root, n)
	return nil
}
