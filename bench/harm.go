package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// harmOn is the file in the data directory that makes the extension do harm while it exists.
const harmOn = "on"

// harm is an attack of an extension on the others. A number of workers repeat act.
type harm struct {
	name    string
	workers int
	act     func(ctx context.Context, k *sdk.Kernel, dir string)
}

var harms = []harm{
	{"publish", 512, func(ctx context.Context, k *sdk.Kernel, _ string) {
		_, _ = k.Commit(ctx, sdk.Publish("harm.noise", map[string]string{"noise": strings.Repeat("x", 300)}))
	}},
	{"large", 64, func(ctx context.Context, k *sdk.Kernel, _ string) {
		_, _ = k.Commit(ctx, sdk.Publish("harm.noise", map[string]string{"noise": strings.Repeat("x",
			contract.MaxPayload-100)}))
	}},
	{"calls", 512, func(ctx context.Context, k *sdk.Kernel, _ string) { _, _ = k.Get(ctx, "key") }},
	{"connects", 64, func(_ context.Context, _ *sdk.Kernel, dir string) {
		if c, err := net.Dial("unix", kernelSocket(dir)); err == nil {
			_, _ = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
			_ = c.Close()
		}
	}},
	{"stderr", 1, func(context.Context, *sdk.Kernel, string) {
		_, _ = os.Stderr.WriteString(strings.Repeat("noise ", 100) + "\n")
	}},
	{"spin", 8, func(context.Context, *sdk.Kernel, string) { burn(100 * time.Millisecond) }},
	{"threads", 200, func(context.Context, *sdk.Kernel, string) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		burn(100 * time.Millisecond)
	}},
	{"processes", 32, func(context.Context, *sdk.Kernel, string) { child(false) }},
	{"sessions", 32, func(context.Context, *sdk.Kernel, string) { child(true) }},
	{"disk", 2, func(_ context.Context, _ *sdk.Kernel, dir string) {
		f, err := os.CreateTemp(dir, "fill")
		if err != nil {
			return
		}
		_, _ = f.Write(make([]byte, 1<<20))
		_ = f.Sync()
		_ = f.Close()
		_ = os.Remove(f.Name())
	}},
}

func burn(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
	}
}

// child computes in its own process, optionally in its own session.
func child(session bool) {
	c := exec.Command("/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	_ = c.Run()
}

// kernelSocket returns the kernel's socket for extensions, from a data directory.
func kernelSocket(dir string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(dir)), "run", "kernel.sock")
}

// serveHarm is the extension.
func serveHarm(name string) {
	sdk.Serve(sdk.Extension{
		ID: "harm",
		Run: func(ctx context.Context, k *sdk.Kernel) error {
			for _, h := range harms {
				if h.name == name {
					h.run(ctx, k)
				}
			}
			return nil
		},
	})
}

func (h harm) run(ctx context.Context, k *sdk.Kernel) {
	on := func() bool { _, err := os.Stat(filepath.Join(k.DataDir(), harmOn)); return err == nil }
	for ctx.Err() == nil {
		if !on() {
			time.Sleep(20 * time.Millisecond) //nolint:forbidigo // it rests
			continue
		}
		during, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		for range h.workers {
			all.Go(func() {
				for during.Err() == nil {
					h.act(during, k, k.DataDir())
				}
			})
		}
		for on() && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond) //nolint:forbidigo // it goes on
		}
		stop()
		all.Wait()
	}
}
