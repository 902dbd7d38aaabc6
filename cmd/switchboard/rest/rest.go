// Package rest gives memory back to the system when a process has come to rest:
// what its start or a burst of work has needed, and nothing needs any more.
//
// A process that has worked keeps about twice what it uses, for the next
// collection of garbage comes only when more is needed. A person's assistant is at
// rest nearly all the time.
//
// A start is the opposite of rest: whoever imports the package collects no garbage
// while it starts, which begins before other packages prepare anything.
//
// At rest means that for a while next to nothing was allocated. Memory is given
// back once for a piece of work, at most once a minute, and once more when what
// was kept for those who might come again has gone too, connections and histories:
// that takes some milliseconds of processor time, and what is needed again has to
// be fetched again.
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
	settling = time.Second     // between looks, until memory was given back first
	looking  = 5 * time.Second // between looks
	apart    = time.Minute     // between two times of giving back
	quiet    = 1 << 20         // bytes allocated between two looks that are rest: probes of health take some
	worth    = 4 << 20         // bytes allocated since the last time that are worth it
	gone     = 2 * time.Minute // after which nothing is kept any more that nobody used
)

// atStart is how much garbage a start may make for each byte in use, in percent.
const atStart = 400

func init() { begin() } //nolint:gochecknoinits // what others prepare is garbage enough for a collection

// begin lets a process start without collecting garbage, which somebody waits for.
// It ends with the first collection, before the heap has 20 MiB, or with the first
// rest. Who has set GOGC has decided otherwise.
func begin() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	usual := debug.SetGCPercent(atStart)
	runtime.AddCleanup(new([16]byte), func(p int) { debug.SetGCPercent(p) }, usual)
}

// Watch gives memory back whenever the process comes to rest, until ctx ends.
func Watch(ctx context.Context) { watch(ctx, allocated, giveBack) }

func watch(ctx context.Context, allocated func() uint64, giveBack func()) {
	every := settling
	timer := time.NewTimer(every)
	defer timer.Stop()
	var seen, done uint64 // allocated at the last look; when memory was given back
	var last time.Time
	more := false // is to be given back
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		before := seen
		seen = allocated()
		worked := seen-done >= worth && time.Since(last) >= apart
		if before > 0 && seen-before < quiet && (worked || more && time.Since(last) >= gone) {
			giveBack()
			seen, last, every = allocated(), time.Now(), looking
			done, more = seen, worked
		}
		timer.Reset(every)
	}
}

const allocs = "/gc/heap/allocs:bytes"

// allocated is how many bytes the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: allocs}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func giveBack() {
	runtime.GC() // what pools hold goes with the second collection
	debug.FreeOSMemory()
	unmapProgram()
}
