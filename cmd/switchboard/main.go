// Command switchboard is the only binary: the kernel, its command line, and, executed again
// by the kernel, every built-in extension.
//
// This package wires the parts and talks to people. Package kernel, the extensions and
// docs/ describe the promises of the parts. A command prints its result on stdout, as a
// table or with --json; field names are stable. An error goes to stderr, tells what to do,
// and makes the exit status 1.
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
		os.Exit(1) //nolint:gocritic // no deferred call is needed
	}
}

// errReported makes the exit status 1 after the command has reported the problem.
var errReported = errors.New("reported")
