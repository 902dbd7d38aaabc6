package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// note remembers a result that lies in the inbox of main, and tells main of it
// if it is idle.
func (c *change) note(root string, m mark) error {
	n, err := readOrNew[notice](c, noticePrefix+root)
	if err != nil {
		return err
	}
	n.Unnamed = append(n.Unnamed, m)
	c.write(noticePrefix+root, n)
	c.mu.Lock()
	c.unnamed[root] = time.Now()
	c.mu.Unlock()
	return c.tell(root, n)
}

// tell names the results that no notice has named, once, to a main that is idle.
// One that is not is told when its turn has ended.
func (c *change) tell(root string, n *notice) error {
	c.mu.Lock()
	waiting := c.waits[root][main] != nil
	c.mu.Unlock()
	if len(n.Unnamed) == 0 || waiting {
		return nil
	}
	switch _, state, err := c.k.Session(c.ctx, root); {
	case errors.Is(err, contract.ErrNotFound):
		return nil // the conversation was deleted
	case err != nil:
		return fmt.Errorf("find out whether %s is idle: %w", root, err)
	case state != stateIdle:
		return nil
	}
	n.Number++
	var names []string
	for _, m := range n.Unnamed {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	const most = 50
	shown := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		shown += fmt.Sprintf(" and %d more", len(names)-most)
	}
	text := "Results lie in your inbox: " + shown + ". receive or check collects them."
	c.effect(sdk.Raw(&busv1.Input{
		Session: root, Kind: contract.InputNotice, Sender: ID, Text: text, DedupeKey: noticeDedupe(root, n.Number),
	}))
	n.Named, n.Unnamed = append(n.Named, n.Unnamed...), nil
	c.write(noticePrefix+root, n)
	return nil
}

func noticeDedupe(root string, number int64) string { return fmt.Sprintf("notice:%s:%d", root, number) }

// unnote forgets results that are collected. The notice of them is withdrawn
// with the last.
func (c *change) unnote(root string, items []lying) error {
	if !slices.ContainsFunc(items, func(i lying) bool { return i.Result != nil }) {
		return nil
	}
	n, err := read[notice](c, noticePrefix+root)
	if err != nil || n == nil {
		return err
	}
	collected := func(m mark) bool { return slices.ContainsFunc(items, func(i lying) bool { return i.seq == m.Seq }) }
	named := len(n.Named)
	n.Named, n.Unnamed = slices.DeleteFunc(n.Named, collected), slices.DeleteFunc(n.Unnamed, collected)
	if named > 0 && len(n.Named) == 0 {
		c.effect(sdk.Withdraw(noticeDedupe(root, n.Number)))
	}
	c.write(noticePrefix+root, n)
	return nil
}

// turnEnded tells a main whose turn has ended of its results.
func (t *tasks) turnEnded(ctx context.Context, root string) (sdk.Effects, error) {
	t.mu.Lock()
	_, known := t.unnamed[root]
	t.mu.Unlock()
	if !known {
		return nil, nil
	}
	c := t.change(ctx)
	n, err := readOrNew[notice](c, noticePrefix+root)
	if err != nil {
		return nil, err
	}
	if len(n.Unnamed) == 0 {
		t.forget(t.unnamed, root)
		return nil, nil
	}
	if err := c.tell(root, n); err != nil {
		return nil, err
	}
	return c.effects(), nil
}
