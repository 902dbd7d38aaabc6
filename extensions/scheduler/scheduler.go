// Package scheduler is the extension that keeps reminders and recurring
// schedules and publishes an event when one is due.
//
// Promises:
//   - A fire is one commit: the event, under a dedupe key of schedule, revision
//     and due time, and the advanced schedule, by version. Whatever dies
//     between any two steps, no fire is lost and none happens twice.
//   - What became due while nothing ran fires at the start, at once: a one-shot
//     always, marked late; a recurring schedule once if it is younger than its
//     grace, otherwise it is skipped, which its row and the log tell.
//   - A row that cannot be read stops nobody else; list_schedules shows it.
//   - The destination is settled at creation: a named channel must exist and be
//     configured, and the conversation that asked is always kept, so that
//     without a channel the reminder goes back to it.
//   - Idle cost is one timer, whatever the number of schedules.
//
// Schedules fire concurrently, each by itself in order. Rows are the truth:
// memory holds only when to look at which of them. Finished schedules stay
// visible for a week and are then deleted.
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

// ID is the extension's id.
const ID = "scheduler"

// New is the extension.
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

// config is the configuration.
type config struct {
	// MinEverySeconds is the shortest interval of every_seconds; 0: 10.
	MinEverySeconds float64 `json:"min_every_seconds"`
}

// kernel is what the scheduler needs of the kernel.
type kernel interface {
	Get(ctx context.Context, key string) (sdk.Value, error)
	Scan(ctx context.Context, prefix string, each func(sdk.Value) error) error
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	CommitOnce(ctx context.Context, id string, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Channels(ctx context.Context) ([]*kernelv1.Channel, error)
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

	loaded  chan struct{} // closed when every stored row is known
	stopped chan struct{} // closed when the background work has ended

	mu         sync.Mutex
	lastNumber int64
	expected   map[string]expectation // rows that a returned result will write
	failures   map[string]int         // in a row, of fires
	unreadable map[string]string      // id -> why
}

func (s *scheduler) start(ctx context.Context, k kernel, log hclog.Logger, now func() time.Time, location *time.Location, c config) error {
	if c.MinEverySeconds < 0 {
		return fmt.Errorf("configuration of scheduler: min_every_seconds is %v: it must not be negative", c.MinEverySeconds)
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
		return fmt.Errorf("stop of the scheduler: a commit is still running: %w", ctx.Err())
	}
}

// ready waits until the stored rows are known.
func (s *scheduler) ready(ctx context.Context) error {
	if s.loaded == nil {
		return errors.New("the scheduler has not been started")
	}
	select {
	case <-s.loaded:
		return nil
	case <-s.stopped:
		select {
		case <-s.loaded:
			return nil
		default:
			return fmt.Errorf("the scheduler is shutting down: %w", contract.ErrUnavailable)
		}
	case <-ctx.Done():
		return fmt.Errorf("the stored schedules are still being read: %w", ctx.Err())
	}
}
