package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// figures are the results of one measurement.
type figures struct {
	Events   int
	Rate     float64       // events per second, accepted, handled and acknowledged
	Accepted spread        // from calling publish to its return
	Handled  spread        // from calling publish to the call of the handler
	CPU      time.Duration // of all processes, for each event
}

// spread is the distribution of a time.
type spread struct{ P50, P99 time.Duration }

func (f figures) String() string {
	return fmt.Sprintf("%d events, %.0f/s, accepted p99 %s, handled p99 %s, CPU %s", f.Events, f.Rate, f.Accepted.P99,
		f.Handled.P99, f.CPU)
}

func spreadOf(times []time.Duration) spread {
	if len(times) == 0 {
		return spread{}
	}
	slices.Sort(times)
	return spread{times[len(times)/2], times[len(times)*99/100]}
}

func median[T cmp.Ordered](values []T) T {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// event returns 300 bytes of JSON with the time of publishing.
func event() []byte {
	return []byte(`{"at":` + strconv.FormatInt(time.Now().UnixNano(), 10) + `,"fill":"` + fill + `"}`)
}

var fill = strings.Repeat("x", 300-len(`{"at":,"fill":""}`)-19)

// publishedAt returns the time in an event.
func publishedAt(event []byte) time.Time {
	const from = len(`{"at":`)
	ns, err := strconv.ParseInt(string(event[from:from+19]), 10, 64)
	if err != nil {
		panic("not an event of this program: " + string(event))
	}
	return time.Unix(0, ns)
}

// queue is a system in this process.
type queue struct {
	// publish returns when the system has accepted the event, by its own guarantees.
	publish func(ctx context.Context, publisher int, event []byte) error
	// settled returns when all handled events are acknowledged, by the system's own guarantees.
	settled func(ctx context.Context) error
	close   func()
}

// onTheWay bounds the events that are accepted and not handled, because the measurement is
// about handled events, not about a growing backlog.
const onTheWay = 1024

// load publishes to a queue and counts the events that its handler gets.
type load struct {
	room    chan struct{}
	handled atomic.Int64
	twice   atomic.Int64 // handled more often than published

	mu    sync.Mutex
	since time.Time
	took  []time.Duration // from publishing to handling, without the warm-up
}

// handle is the handler of all systems.
func (l *load) handle(event []byte) {
	at, now := publishedAt(event), time.Now()
	l.mu.Lock()
	if !l.since.IsZero() && !at.Before(l.since) {
		l.took = append(l.took, now.Sub(at))
	}
	l.mu.Unlock()
	l.handled.Add(1)
	select {
	case <-l.room:
	default:
		l.twice.Add(1)
	}
}

// publish runs a number of publishers for a while, each of which waits until its event is
// accepted, and waits until all events are handled.
func (l *load) publish(q *queue, publishers int, span time.Duration) (accepted []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), span+2*time.Minute)
	defer cancel()
	target := l.handled.Load()
	took := make([][]time.Duration, publishers)
	errs := make([]error, publishers)
	end := time.Now().Add(span)
	var all sync.WaitGroup
	for p := range publishers {
		all.Go(func() {
			for time.Now().Before(end) && errs[p] == nil {
				l.room <- struct{}{}
				begun := time.Now()
				errs[p] = q.publish(ctx, p, event())
				took[p] = append(took[p], time.Since(begun))
			}
		})
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, fmt.Errorf("publishing: %w", err)
	}
	accepted = slices.Concat(took...)
	for target += int64(len(accepted)); l.handled.Load() < target; time.Sleep(200 * time.Microsecond) {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%d events were not handled within two minutes", target-l.handled.Load())
		}
	}
	return accepted, q.settled(ctx)
}

// inProcess measures a queue in this process.
func inProcess(open func(o options, handle func(event []byte)) (*queue, error)) func(o options) (figures, error) {
	return func(o options) (figures, error) {
		l := &load{room: make(chan struct{}, onTheWay)}
		q, err := open(o, l.handle)
		if err != nil {
			return figures{}, err
		}
		defer q.close()
		if _, err := l.publish(q, o.publishers, o.warm); err != nil {
			return figures{}, err
		}
		cpu, begun := processorTime(), time.Now()
		l.mu.Lock()
		l.since = begun
		l.mu.Unlock()
		accepted, err := l.publish(q, o.publishers, o.span)
		if err != nil {
			return figures{}, err
		}
		took := time.Since(begun)
		cpu = processorTime() - cpu
		if n := l.twice.Load(); n > 0 {
			return figures{}, fmt.Errorf("%d events were handled twice, although nothing failed", n)
		}
		return figures{len(accepted), float64(len(accepted)) / took.Seconds(), spreadOf(accepted), spreadOf(l.took),
			cpu / time.Duration(len(accepted))}, nil
	}
}

// processorTime returns the processor time of this process so far.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // cannot happen
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
