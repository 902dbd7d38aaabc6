// Package scheduler is the extension that stores reminders and recurring
// schedules and publishes an event when one is due.
//
// Promises:
//   - A fire is one commit of the event, with a dedupe key of schedule, revision
//     and due time, and of the advanced schedule, by version. No crash loses a
//     fire or repeats it.
//   - A schedule that became due while the scheduler was down fires at its start:
//     a one-shot always, marked late; a recurring schedule once if it is less
//     overdue than its grace. Otherwise it is skipped, and its row and the log
//     say so.
//   - An unreadable row affects no other; list_schedules shows it.
//   - The destination is checked at creation: a named channel must exist and be
//     configured. Without a channel the reminder goes to the conversation that
//     asked for it.
//   - While idle, there is one timer for all schedules.
//
// Schedules fire concurrently; the fires of one schedule are in order. The rows
// are the source of truth: memory holds only the time to check each of them.
// Finished schedules stay visible for a week and are then deleted.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/scheduler/alarm"
	"github.com/switchboard-run/switchboard/sdk"
)

// ID is the id of the extension.
const ID = "scheduler"

// New returns the extension.
func New() sdk.Extension {
	s := &scheduler{}
	return sdk.Extension{
		ID: ID,
		Start: func(ctx context.Context, k *sdk.Kernel) error {
			var c config
			if err := k.Config(&c); err != nil {
				return err
			}
			return s.start(ctx, k, k.Log(), time.Now, k.Location(), c)
		},
		Stop:   s.stop,
		Tools:  s.tools(),
		Handle: s.handle,
	}
}

// config is the configuration of the extension.
type config struct {
	// MinEverySeconds is the shortest interval that a tool call may ask for; 0 means 10.
	MinEverySeconds float64 `json:"min_every_seconds"`
}

// kernel is the part of sdk.Kernel that the scheduler uses.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	CommitOnce(ctx context.Context, id string, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
	FindBlob(ctx context.Context, name string) (sdk.Blob, error)
	Ask(ctx context.Context, tool string, arguments any) (sdk.ToolResult, error)
}

var _ kernel = (*sdk.Kernel)(nil)

type scheduler struct {
	k        kernel
	log      hclog.Logger
	now      func() time.Time
	location *time.Location
	minEvery time.Duration
	started  time.Time
	clock    *alarm.Clock

	loaded  chan struct{} // closed when all stored rows have been read
	stopped chan struct{} // closed when the background goroutine has ended

	mu         sync.Mutex
	lastNumber int64
	expected   map[string]expectation // rows that a returned result will write
	failures   map[string]int         // consecutive failures by id
	unreadable map[string]string      // errors by id
}

func (s *scheduler) start(
	ctx context.Context, k kernel, log hclog.Logger, now func() time.Time, location *time.Location, c config,
) error {
	if c.MinEverySeconds < 0 {
		return fmt.Errorf("read config of scheduler: min_every_seconds is %v, must not be negative", c.MinEverySeconds)
	}
	if c.MinEverySeconds == 0 {
		c.MinEverySeconds = 10
	}
	s.k, s.log, s.now, s.location = k, log, now, location
	if location.String() == "Local" {
		s.location = time.UTC
	}
	s.minEvery = time.Duration(c.MinEverySeconds * float64(time.Second))
	s.started = now()
	s.clock = alarm.New(now)
	s.loaded, s.stopped = make(chan struct{}), make(chan struct{})
	s.expected, s.failures, s.unreadable = map[string]expectation{}, map[string]int{}, map[string]string{}
	go func() {
		defer close(s.stopped)
		if s.load(ctx) {
			s.clock.Run(ctx, 256, s.fireAll)
		}
	}()
	return nil
}

func (s *scheduler) stop(ctx context.Context) error {
	if s.stopped == nil {
		return nil
	}
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop scheduler: wait for a running commit: %w", ctx.Err())
	}
}

// ready waits until the stored rows have been read.
func (s *scheduler) ready(ctx context.Context) error {
	if s.loaded == nil {
		return errors.New("scheduler is not started")
	}
	select {
	case <-s.loaded:
		return nil
	case <-s.stopped:
		select {
		case <-s.loaded:
			return nil
		default:
			return fmt.Errorf("scheduler is shutting down: %w", contract.ErrUnavailable)
		}
	case <-ctx.Done():
		return fmt.Errorf("read schedules: %w", ctx.Err())
	}
}
