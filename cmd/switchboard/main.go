// Command switchboard is the only binary: the kernel, its command line, and, executed again
// by the kernel, every built-in extension.
//
// This package wires the parts and talks to people. Package kernel, the extensions and
// docs/ describe the promises of the parts. A command prints its result on stdout, as a
// table or with --json; field names are stable. An error goes to stderr, as JSON with --json,
// tells what to do, and makes the exit status 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // time zones, also where the system has none

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/cmd/switchboard/dev"
	_ "github.com/switchboard-run/switchboard/cmd/switchboard/slack" // before anything else is prepared
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/web/page"
	"github.com/switchboard-run/switchboard/home/cluster"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/document"
)

func main() {
	if len(os.Args) > 1 {
		switch startedByKernel := os.Getenv(contract.Handshake.MagicCookieKey) != ""; {
		case os.Args[1] == extensionCommand && startedByKernel:
			serveBuiltins(os.Args[2:])
			return
		case os.Args[1] == dev.BenchCommand && startedByKernel:
			sdk.Serve(dev.Bench())
			return
		case os.Args[1] == documentCommand:
			os.Exit(document.Serve(os.Stdin, os.Stdout, os.Stderr))
		case os.Args[1] == pageCommand:
			os.Exit(page.Serve(os.Stdin, os.Stdout, os.Stderr))
		case os.Args[1] == confineCommand:
			runConfined(os.Args[2:])
			return
		case os.Args[1] == guardCommand:
			cluster.Guard(os.Stdin)
			return
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if c, err := newRootCommand().ExecuteContextC(ctx); err != nil {
		if !errors.Is(err, errReported) {
			printError(c, err)
		}
		os.Exit(1) //nolint:gocritic // no deferred call is needed
	}
}

// printError prints an error for people, or, with --json, as an object whose field error
// has the text.
func printError(c *cobra.Command, err error) {
	if wanted, _ := c.Flags().GetBool("json"); !wanted {
		fmt.Fprintln(safeText{w: os.Stderr}, "switchboard:", message(err))
		return
	}
	c.SetOut(os.Stderr)
	_ = printJSON(c, map[string]string{"error": message(err)})
}

// errReported makes the exit status 1 after the command has reported the problem.
var errReported = errors.New("reported")
