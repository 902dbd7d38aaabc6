package host

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/fair"
)

// limits bound what may be open at a time.
type limits struct {
	requests    int   // of an extension; an agent has two or three for each of a thousand turns
	streams     int   // of commits of an extension, of which the SDK has one, and as many watches
	connections int   // of an extension; the SDK has one
	unread      int64 // bytes of requests that are not complete, on a connection
}

var defaultLimits = limits{requests: 8192, streams: 16, connections: 64, unread: 256 << 20}

// costly are the streams that an extension may have few of: each of commits is read
// ahead, each watch reads every event.
var costly = map[string]string{
	kernelv1.Bus_Commit_FullMethodName: "streams of commits",
	kernelv1.Bus_Watch_FullMethodName:  "watches of events",
}

// Limits of requests that only read: how many of one extension are served at a time,
// and how many it may make a second while others make requests too. The agents of the
// binary have several for each of hundreds of turns a second.
const (
	readsAtOnce = 4
	sharedRate  = 1000
	builtinRate = 16_000
	sharedBurst = 1000
)

const complainEvery = 10 * time.Second

// client is one generation of an extension, as the caller of the kernel's services.
type client struct {
	actor   *bus.Actor
	gone    atomic.Bool         // the generation has ended
	pace    *rate.Limiter       // of requests, while others make some too
	reading *semaphore.Weighted // for reads that are served

	// Guarded by admission.mu.
	requests    int            // open
	methods     map[string]int // open requests by method
	connections int
}

func newClient(a *bus.Actor) *client {
	c := &client{
		actor: a, pace: rate.NewLimiter(sharedRate, sharedBurst), reading: semaphore.NewWeighted(readsAtOnce),
		methods: map[string]int{},
	}
	if a.Builtin {
		c.pace.SetLimit(builtinRate)
	}
	return c
}

// admission bounds the requests of extensions, before the kernel reads them, and
// divides the kernel's time between extensions.
type admission struct {
	h *Host
	limits
	checkUser func(net.Conn) (pid int, err error)

	mu         sync.Mutex
	activity   fair.Activity        // of any kind
	complained map[string]time.Time // by extension and reason
}

func newAdmission(h *Host) *admission {
	return &admission{h: h, limits: defaultLimits, checkUser: ownuser.Check, complained: map[string]time.Time{}}
}

// tap admits a request by its headers. It runs on the goroutine that reads the
// connection, and must not wait.
func (d *admission) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	c, err := d.h.client(ctx, info.Header)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.know(ctx, c); err != nil {
		return nil, err
	}
	method := info.FullMethodName
	streams, isCostly := costly[method]
	switch {
	case c.requests >= d.requests:
		return nil, d.refuse(c.actor.ID, tooMany("requests", d.requests))
	case isCostly && c.methods[method] >= d.streams:
		return nil, d.refuse(c.actor.ID, tooMany(streams, d.streams))
	}
	c.requests++
	c.methods[method]++
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		c.requests--
		c.methods[method]--
	})
	return context.WithValue(ctx, clientKey{}, c), nil
}

func tooMany(things string, most int) string {
	return fmt.Sprintf("too many %s: an extension may have %d open", things, most)
}

// refuse names the limit to the extension, and to the log from time to time.
// The caller holds d.mu.
func (d *admission) refuse(extension, reason string) error {
	now, key := time.Now(), extension+" "+reason
	maps.DeleteFunc(d.complained, func(_ string, at time.Time) bool { return now.Sub(at) > complainEvery })
	if d.complained[key].IsZero() {
		d.complained[key] = now
		d.h.Log.Warn("refusing requests of an extension", "extension", extension, "reason", reason)
	}
	return status.Error(codes.ResourceExhausted, reason)
}

var (
	errNoToken = status.Error(codes.Unauthenticated, "this connection has no valid token of a running extension")
	errNoOwner = status.Error(codes.Unauthenticated, "the request lacks the token of this kernel")
)

// begin waits until a request may be served; the caller must call end after it. A
// client that makes too many requests beside others is slowed down.
func (d *admission) begin(ctx context.Context, c *client, method string) (end func(), err error) {
	if !d.note(c.actor) {
		if c.pace.Wait(ctx) != nil { // it has ended, or would before
			return nil, cmp.Or(ctx.Err(), context.DeadlineExceeded)
		}
	}
	if c.actor == owner || method == kernelv1.Tools_Call_FullMethodName { // which may take long
		return func() {}, nil
	}
	if err := c.reading.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { c.reading.Release(1) }, nil
}

// note notes that an extension is active, and reports whether it need not wait for
// others: it is alone, or the owner.
func (d *admission) note(a *bus.Actor) (alone bool) {
	if a == owner {
		return true
	}
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.activity.Note(a.ID, now)
	return d.activity.Alone(a.ID, now)
}

// owner is the owner of the kernel, who may do all that adminv1 has and nothing else.
var owner = &bus.Actor{ID: "owner", Builtin: true, Admin: bus.AdminManage}
