// Package rest returns memory to the system when a process is idle: memory that its start
// or a burst of work needed.
//
// After work a process keeps about twice the memory that it uses, because the next garbage
// collection comes only when it needs more. A person's assistant is idle nearly all the
// time.
//
// Importing the package also delays garbage collection during the start, before other
// packages are initialized.
//
// A process is idle if it allocated next to nothing for a while. Memory is returned once
// after work, at most once a minute, and again when caches of connections and histories
// have expired. Each time takes some milliseconds of processor time, and pages that are
// needed again must be read again.
package rest

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	startInterval = time.Second     // between checks, until memory was returned first
	checkInterval = 5 * time.Second // between later checks
	minInterval   = time.Minute     // between two returns of memory
	idleBytes     = 1 << 20         // allocated between two checks of an idle process: health probes take some
	workBytes     = 4 << 20         // allocated since the last return, to be worth another
	cacheExpiry   = 2 * time.Minute // after which unused caches are empty
)

// startGCPercent is GOGC during the start.
const startGCPercent = 400

func init() { begin() } //nolint:gochecknoinits // before other packages allocate

// begin delays garbage collection during the start, for speed. That ends with the first
// collection, before the heap has 20 MiB, or when the process is idle. If GOGC is set, begin
// does nothing.
func begin() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	usual := debug.SetGCPercent(startGCPercent)
	runtime.AddCleanup(new([16]byte), func(p int) { debug.SetGCPercent(p) }, usual)
}

// Watch returns memory whenever the process becomes idle, until ctx ends.
func Watch(ctx context.Context) { watch(ctx, allocated, giveBack) }

func watch(ctx context.Context, allocated func() uint64, giveBack func()) {
	every := startInterval
	timer := time.NewTimer(every)
	defer timer.Stop()
	var seen, done uint64 // bytes allocated at the last check; at the last return
	var last time.Time
	more := false // to return after cacheExpiry
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		before := seen
		seen = allocated()
		worked := seen-done >= workBytes && time.Since(last) >= minInterval
		if before > 0 && seen-before < idleBytes && (worked || more && time.Since(last) >= cacheExpiry) {
			giveBack()
			seen, last, every = allocated(), time.Now(), checkInterval
			done, more = seen, worked
		}
		timer.Reset(every)
	}
}

const allocs = "/gc/heap/allocs:bytes"

// allocated returns the bytes that the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: allocs}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func giveBack() {
	runtime.GC() // pools are emptied by the second collection, in FreeOSMemory
	debug.FreeOSMemory()
	unmapProgram()
}
