// Command switchboard is the one binary: the kernel, its command line, and,
// executed again by the kernel, every built-in extension.
//
// This package only wires. What the parts promise stands in package kernel, in
// the extensions, and in docs/.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == extensionCommand {
		serveBuiltins(os.Args[2:])
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newRootCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "switchboard:", err)
		os.Exit(1)
	}
}
