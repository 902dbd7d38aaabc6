package kernel_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A program embeds a kernel on a SQLite store, with one extension that is a Go
// value, publishes an event and receives it.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "sb")
	check(err)
	defer os.RemoveAll(dir)
	heard := make(chan string)
	greeter := sdk.Extension{Handle: func(_ context.Context, e sdk.Event) (sdk.Effects, error) {
		heard <- string(e.Payload)
		return nil, nil
	}}
	k, err := kernel.Open(context.Background(), kernel.Options{
		RunDir: dir,
		Store:  func() (journal.Store, error) { return sqlite.Open(filepath.Join(dir, "store.db")) },
		Extensions: []kernel.Spec{{
			ID: "greeter", Process: supervisor.Spec{Serve: sdk.Local(hclog.NewNullLogger(), greeter)},
			Permissions: kernel.Permissions{Subscribe: []bus.Subscription{{Pattern: "greeter.hello"}}},
		}},
	})
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- k.Run(ctx) }()
	_, err = k.Publish("greeter.hello", "", "Hello!")
	check(err)
	fmt.Println(<-heard)
	stop()
	check(<-done)
	check(k.Close())
	// Output: "Hello!"
}
