// Command switchboard is the one binary: the kernel, its command line, and,
// executed again by the kernel, every built-in extension.
//
// This package wires and talks to people. What the parts promise stands in
// package kernel, in the extensions, and in docs/. A command prints what was
// asked for on stdout, as a table or, with --json, with field names that only
// gain new ones; an error goes to stderr, says what to do, and makes the exit
// status 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones, also where the system has none

	_ "github.com/switchboard-run/switchboard/cmd/switchboard/slack" // before anything else is prepared
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case extensionCommand:
			serveBuiltins(os.Args[2:])
			return
		case confineCommand:
			runConfined(os.Args[2:])
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintln(safeText{w: os.Stderr}, "switchboard:", message(err))
		}
		os.Exit(1) //nolint:gocritic // nothing is left to be undone
	}
}

// errReported makes the exit status 1 where everything has been said.
var errReported = errors.New("reported")
