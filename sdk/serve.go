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
	// orphanTime is how long a process waits for the kernel that started it.
	orphanTime = 30 * time.Second
	// exitTime is how long main may take after Serve has returned.
	exitTime = 2 * time.Second
	// settleTime is how long after its start a process gives back the memory that
	// only the start needed: several megabytes of each, which an idle one would
	// otherwise keep.
	settleTime = time.Second
)

// Serve serves an extension, or several that share this process, until the
// kernel shuts them down or is gone, or SIGTERM arrives. It is the last thing
// that main does: the process ends soon after it has returned. What is printed
// to stdout meanwhile is logged by the kernel; logs of package log go to stderr
// as JSON.
//
// A program that is started by hand, or whose extensions cannot be served, is
// told why on stderr and ends with exit code 1.
func Serve(exts ...Extension) {
	logger := hclog.New(&hclog.LoggerOptions{
		Level: logLevel(), Output: os.Stderr, JSONFormat: true, IncludeLocation: false,
	})
	if os.Getenv(contract.Handshake.MagicCookieKey) != contract.Handshake.MagicCookieValue {
		fmt.Fprintln(os.Stderr, "this program is an extension of Switchboard: put it beside its manifest.yaml, and the kernel starts it")
		os.Exit(1)
	}
	server, err := NewServer(logger, exts...)
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot serve: %v\n", err)
		os.Exit(1)
	}
	log.SetFlags(0)
	log.SetOutput(logger.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))

	// go-plugin takes stderr away, and passes on what is written to it from within
	// the process: the last words before its end would be lost.
	stderr := os.Stderr
	server.began = sync.OnceFunc(func() { os.Stderr = stderr })

	time.AfterFunc(settleTime, debug.FreeOSMemory)
	glue := &pluginGlue{server: server}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	go func() {
		orphaned := time.NewTimer(orphanTime)
		defer orphaned.Stop()
		for {
			select {
			case <-term:
				server.Close(-1)
			case <-orphaned.C:
				if !server.connected() {
					server.gone("nobody within " + orphanTime.String())
				}
			case <-server.Done():
				glue.stop()
				return
			}
		}
	}()
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: contract.Handshake,
		Plugins:         plugin.PluginSet{contract.PluginName: glue},
		GRPCServer:      glue.newServer,
		Logger:          logger.Named("plugin"),
	})
	server.gone("go-plugin")
	time.AfterFunc(exitTime, func() { os.Exit(0) })
}

// LogLevelEnv names the environment variable for the least level that is
// logged: trace, debug, info (the default), warn or error.
const LogLevelEnv = "SWITCHBOARD_LOG_LEVEL"

func logLevel() hclog.Level {
	if level := hclog.LevelFromString(os.Getenv(LogLevelEnv)); level != hclog.NoLevel {
		return level
	}
	return hclog.Info
}
