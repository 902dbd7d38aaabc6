package main

import (
	"context"
	"fmt"
	"os"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// backlogArgument makes this program the extension backlog.
	backlogArgument = "backlog"
	backlogTopic    = "backlog.work"
	backlogSize     = 10_000
)

func backlogManifest() string {
	self, _ := os.Executable()
	return fmt.Sprintf("api: 1\nid: backlog\nname: Backlog\nversion: 1.0.0\nrun: {command: %q, args: [%s]}\n"+
		"permissions: {publish: [%[3]s], subscribe: [{topic: %[3]s, ordered: false, ack_wait: 24h, max_age: 30d, "+
		"max_deliver: 1000}]}\nrestart: {backoff: 20ms, max_backoff: 20ms, max: 1000}\n", self, backlogArgument, backlogTopic)
}

// serveBacklog runs this program as an extension that never finishes what it has published.
func serveBacklog() {
	sdk.Serve(sdk.Extension{
		ID: "backlog",
		Run: func(ctx context.Context, k *sdk.Kernel) error {
			if v, err := k.Get(ctx, "filled"); err != nil || v.Version > 0 {
				return err
			}
			const each = 100
			for n := range backlogSize / each {
				var effects []sdk.Effect
				for i := range each {
					effects = append(effects, sdk.Publish(backlogTopic, map[string]int{"n": n*each + i}))
				}
				if _, err := k.Commit(ctx, effects...); err != nil {
					return err
				}
			}
			_, err := k.Commit(ctx, sdk.Put("filled", []byte("1")))
			return err
		},
		Handle: func(ctx context.Context, _ sdk.Event) (sdk.Effects, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
}

// awaitBacklog waits until a node has the deliveries that wait.
func (n *node) awaitBacklog() error {
	waiting := 0
	err := ledger.Until("the deliveries that wait", ledger.Patience, func() bool {
		waiting = len(ledger.Pending(n.file("switchboard.db")))
		return waiting >= backlogSize
	})
	if err != nil {
		err = fmt.Errorf("%w: %d on %s", err, waiting, n.name)
	}
	return err
}
