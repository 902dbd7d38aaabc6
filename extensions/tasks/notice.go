package tasks

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// notice is the newest notice that main was given.
type notice struct {
	Number int64 `json:"number"`
	Named  int   `json:"named"` // results in it that are not collected yet
}

// note remembers a result that lies in the inbox of main, which is told of it
// once it has nothing to do.
func (c *change) note(root, seq, name string) {
	c.write(unnamedOf(root)+seq, &name)
	c.effect(sdk.WhenIdle(root))
}

const (
	maxNamed = 500 // results in one notice
	maxShown = 50  // whose names are written out
)

// idle names the results to main that no notice has named. It has nothing to do,
// or had a moment ago.
func (t *tasks) idle(ctx context.Context, e contract.SessionIdle) (sdk.Effects, error) {
	c, root := t.change(ctx, "idle:"+e.Session), e.Session
	page, more, err := c.k.Page(ctx, unnamedOf(root), "", maxNamed)
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
	n.Number, n.Named = n.Number+1, len(page)
	c.write(noticePrefix+root, n)
	names := make([]string, 0, maxShown)
	for _, v := range page {
		name, err := seen[string](c, v)
		if err != nil {
			return nil, err
		}
		if len(names) < maxShown {
			names = append(names, *name)
		}
		c.write(v.Key, nil)
		c.effect(sdk.Put(namedOf(root)+lastOf(v.Key), n.Number))
	}
	shown := strings.Join(names, ", ")
	if over := len(page) - len(names); over > 0 {
		shown += " and " + strconv.Itoa(over) + " more"
	}
	c.effect(sdk.Raw(&busv1.Input{
		Session: root, Kind: contract.InputNotice, Sender: ID, DedupeKey: noticeDedupe(root, n.Number), IfExists: true,
		Text: "Results lie in your inbox: " + shown + ". receive or check collects them.",
	}))
	if more {
		c.effect(sdk.WhenIdle(root))
	}
	return c.effects(), nil
}

func noticeDedupe(root string, number int64) string { return fmt.Sprintf("notice:%s:%d", root, number) }

// unnote forgets results that are collected. The notice of them is withdrawn
// with the last.
func (c *change) unnote(root string, items []lying) error {
	for _, item := range items {
		if item.Result == nil {
			continue
		}
		seq := lastOf(item.item)
		if unnamed, err := read[string](c, unnamedOf(root)+seq); err != nil {
			return err
		} else if unnamed != nil {
			c.write(unnamedOf(root)+seq, nil)
			continue
		}
		if err := c.unname(root, seq); err != nil {
			return err
		}
	}
	return nil
}

// unname is unnote for a result that was in a notice.
func (c *change) unname(root, seq string) error {
	in, err := read[int64](c, namedOf(root)+seq)
	if err != nil || in == nil {
		return err
	}
	c.write(namedOf(root)+seq, nil)
	n, err := read[notice](c, noticePrefix+root)
	if err != nil || n == nil || n.Number != *in {
		return err
	}
	if n.Named--; n.Named == 0 {
		c.effect(sdk.Withdraw(noticeDedupe(root, n.Number)))
	}
	c.write(noticePrefix+root, n)
	return nil
}
