package host

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/ownuser"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// limits are what may be open at a time.
type limits struct {
	requests    int   // of an extension; an agent has two or three for each of a thousand turns
	streams     int   // of commits of an extension, of which the SDK has one, and as many watches
	connections int   // of an extension; the SDK has one
	unread      int64 // bytes of requests that are not complete, on a connection
}

var defaultLimits = limits{requests: 8192, streams: 16, connections: 64, unread: 256 << 20}

const complainEvery = 10 * time.Second

// admission bounds what extensions may have open, before the kernel reads what
// they send.
type admission struct {
	h *Host
	limits
	checkUser func(net.Conn) (pid int, err error)

	mu         sync.Mutex
	open       map[*bus.Actor]int   // requests
	few        map[few]int          // requests of which there may be only few
	complained map[string]time.Time // by extension and reason
	connected  map[*bus.Actor]int   // connections
}

func newAdmission(h *Host) *admission {
	return &admission{
		h: h, limits: defaultLimits, checkUser: ownuser.Check, open: map[*bus.Actor]int{}, few: map[few]int{},
		complained: map[string]time.Time{}, connected: map[*bus.Actor]int{},
	}
}

// few is the streams of an extension that cost the kernel more than others: each
// of commits is read ahead, each watch is asked about every event.
type few struct {
	actor  *bus.Actor
	method string
}

var fewOf = map[string]string{
	kernelv1.Bus_Commit_FullMethodName: "streams of commits",
	kernelv1.Bus_Watch_FullMethodName:  "watches of events",
}

// tap admits a request by its headers. It runs on the goroutine that reads the
// connection, and must not wait.
func (d *admission) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	a, err := d.h.actor(ctx, info.Header)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.know(ctx, a); err != nil {
		return nil, err
	}
	what, isFew := fewOf[info.FullMethodName]
	one := few{a, info.FullMethodName}
	switch {
	case d.open[a] >= d.requests:
		return nil, d.refuse(a.ID, fmt.Sprintf("it has %d requests open, which is the most there can be", d.requests))
	case isFew && d.few[one] >= d.streams:
		return nil, d.refuse(a.ID, fmt.Sprintf("it has %d %s open, which is the most there can be", d.streams, what))
	}
	d.open[a]++
	if isFew {
		d.few[one]++
	}
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open[a]--; d.open[a] == 0 {
			delete(d.open, a)
		}
		if isFew {
			if d.few[one]--; d.few[one] == 0 {
				delete(d.few, one)
			}
		}
	})
	return ctx, nil
}

// refuse names the limit to the extension, and to the log from time to time.
// The caller holds d.mu.
func (d *admission) refuse(extension, reason string) error {
	if key, now := extension+" "+reason, time.Now(); now.Sub(d.complained[key]) > complainEvery {
		d.complained[key] = now
		d.h.Log.Warn("refusing requests of an extension", "extension", extension, "reason", reason)
	}
	return status.Error(codes.ResourceExhausted, reason)
}

var (
	errNoToken = status.Error(codes.Unauthenticated, "this connection has no valid token: it belongs to no running extension")
	errNoOwner = status.Error(codes.Unauthenticated, "the request lacks the token of this kernel")
)

// actor returns who makes a request: whose token it carries.
func (h *Host) actor(ctx context.Context, md metadata.MD) (*bus.Actor, error) {
	given := strings.Join(md.Get(contract.TokenHeader), "")
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := connOf(ctx); c != nil && c.control {
		if subtle.ConstantTimeCompare([]byte(given), []byte(h.ownerToken)) != 1 {
			return nil, errNoOwner
		}
		return owner, nil
	}
	if a := h.tokens[given]; a != nil {
		return a, nil
	}
	return nil, errNoToken
}

// owner is the owner of the kernel, who may do all that adminv1 has and nothing else.
var owner = &bus.Actor{ID: "owner", Builtin: true, Admin: bus.AdminManage}
