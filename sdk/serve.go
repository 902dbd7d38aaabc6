package sdk

import (
	"fmt"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/switchboard-run/switchboard/contract"
)

const (
	// orphanTimeout is how long a process waits for its kernel to connect.
	orphanTimeout = 30 * time.Second
	// exitTimeout is how long main may take after Serve has returned.
	exitTimeout = 2 * time.Second
	// trimDelay is the time after which a process returns the memory to the system
	// that only its start needed: several megabytes.
	trimDelay = time.Second
)

// Serve serves an extension, or several that share this process, until the kernel
// shuts them down or ends, or SIGTERM arrives. Call it last in main: the process
// ends soon after it returns. The kernel logs what the process prints to stdout;
// logs of package log go to stderr as JSON.
//
// If the program was started by hand, or its extensions cannot be served, Serve
// prints the reason to stderr and exits with code 1.
func Serve(exts ...Extension) {
	logger := hclog.New(&hclog.LoggerOptions{
		Level: logLevel(), Output: os.Stderr, JSONFormat: true, IncludeLocation: false,
	})
	if os.Getenv(contract.Handshake.MagicCookieKey) != contract.Handshake.MagicCookieValue {
		fmt.Fprintln(os.Stderr, "This program is a Switchboard extension. "+
			"Put it beside its manifest.yaml, and Switchboard starts it.")
		os.Exit(1)
	}
	server, err := NewServer(logger, exts...)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot serve: %v\n", err)
		os.Exit(1)
	}
	log.SetFlags(0)
	log.SetOutput(logger.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))

	// go-plugin replaces os.Stderr with a pipe, which would lose the last lines before
	// the process ends.
	stderr := os.Stderr
	server.onInit = sync.OnceFunc(func() { os.Stderr = stderr })

	time.AfterFunc(trimDelay, debug.FreeOSMemory)
	adapter := &pluginAdapter{server: server}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		orphaned := time.NewTimer(orphanTimeout)
		defer orphaned.Stop()
		for {
			select {
			case <-term:
				server.Close(-1)
			case <-orphaned.C:
				if !server.connected() {
					server.kernelGone("no connection within " + orphanTimeout.String())
				}
			case <-server.Done():
				adapter.stop()
				return
			}
		}
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: contract.Handshake,
		Plugins:         plugin.PluginSet{contract.PluginName: adapter},
		GRPCServer:      adapter.newServer,
		Logger:          logger.Named("plugin"),
	})
	server.kernelGone("go-plugin has ended")
	time.AfterFunc(exitTimeout, func() { os.Exit(0) })
}

// LogLevelEnv is the environment variable of the log level: trace, debug, info (the
// default), warn or error.
const LogLevelEnv = "SWITCHBOARD_LOG_LEVEL"

func logLevel() hclog.Level {
	if level := hclog.LevelFromString(os.Getenv(LogLevelEnv)); level != hclog.NoLevel {
		return level
	}
	return hclog.Info
}
