package limits

import (
	"context"
	"errors"
	"time"

	"github.com/switchboard-run/switchboard/contract/sandbox"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
)

const (
	interval = time.Second
	// diskEvery is the number of checks of memory and processes for one of the disk.
	diskEvery = 5
	// aloneEvery is how many times less often a process that starts no others is
	// checked.
	aloneEvery = 5
)

// Guarded returns a launcher that kills a process over one of its limits, and starts none
// whose directories hold too much. Check returns which limit a process is over; nil: none.
// It is Check, or calls it.
func Guarded(
	launch supervisor.Launcher, check func(pid int, l sandbox.Limits, disk bool) error,
) supervisor.Launcher {
	return func(ctx context.Context, l supervisor.Launch) (*supervisor.Process, error) {
		if err := check(0, l.Limits, true); err != nil {
			return nil, supervisor.Failure{Err: err, Permanent: errors.Is(err, errNoRoom)}
		}
		p, err := launch(ctx, l)
		if err == nil {
			l.Limits.Sockets = p.Sockets
			go watch(p, l.Limits, check) // until the process ends
		}
		return p, err
	}
}

func watch(p *supervisor.Process, l sandbox.Limits, check func(pid int, l sandbox.Limits, disk bool) error) {
	every := interval
	if l.Alone {
		every *= aloneEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-p.Context.Done():
			return
		case <-ticker.C:
		}
		if err := check(p.PID, l, n%diskEvery == 0); err != nil {
			p.Kill("the process was killed: " + err.Error())
			return
		}
	}
}
