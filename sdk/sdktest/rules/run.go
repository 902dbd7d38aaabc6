package rules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel"
)

// Process is one start of the extension. Its functions are safe for concurrent use.
type Process struct {
	Conn grpc.ClientConnInterface
	Gone <-chan struct{} // closed when it has ended
	// Kill ends it as kill -9 does. It returns when it has ended.
	Kill func()
	// Cut closes the connection to it, as the death of the kernel does.
	Cut func()
	// Quit asks it to exit, after its extension has shut down. It does not wait.
	Quit func()
	// Exit says how it ended: whether it had to be killed, and why it ended. Only after Gone.
	Exit func() (killed bool, reason string)
	// Stdout and Stderr are the first lines that it wrote, without the handshake.
	Stdout, Stderr func() []string
}

// run is one Check.
type run struct {
	Subject
	patience   time.Duration
	kernel     *player
	session    *session // nil: the next rule starts one
	generation int64
	tokens     int
	described  *extensionv1.Description // of the first start
	stdout     []string                 // of ended sessions
}

func newRun(s Subject, patience time.Duration) *run {
	return &run{Subject: s, patience: patience, kernel: newPlayer(&s.Spec)}
}

func (r *run) end() { r.discard() }

// discard kills the session.
func (r *run) discard() {
	if s := r.session; s != nil {
		r.session = nil
		s.close()
		r.stdout = append(r.stdout, s.process.Stdout()...)
	}
}

// within bounds a request.
func (r *run) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, r.patience)
}

// starting bounds a start.
func (r *run) starting(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := r.Spec.Process.StartTimeout
	return context.WithTimeoutCause(ctx, max(limit, r.patience), fmt.Errorf("it did not start within %s", limit))
}

// launched returns a session that may not be initialized yet.
func (r *run) launched(ctx context.Context) (*session, error) {
	if r.session != nil {
		return r.session, nil
	}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	ctx, cancel := r.starting(ctx)
	defer cancel()
	p, err := r.Start(ctx)
	if err != nil {
		return nil, err
	}
	r.session = newSession(r, p)
	return r.session, nil
}

func (r *run) prepare() error {
	if r.Spec.Prepare == nil {
		return nil
	}
	return r.Spec.Prepare()
}

// active returns a session that is described and initialized, and whose stream of
// deliveries is open if it handles any.
func (r *run) active(ctx context.Context) (*session, error) {
	s, err := r.launched(ctx)
	if err != nil {
		return nil, fmt.Errorf("it does not start again: %w", err)
	}
	if s.active {
		return s, nil
	}
	if s.description, err = s.describe(ctx); err != nil {
		return nil, fmt.Errorf("it does not describe itself: %w", s.why(err))
	}
	if r.described == nil {
		r.described = s.description
	}
	if err := s.initialize(ctx); err != nil {
		return nil, fmt.Errorf("it does not start again: Init: %w", s.why(err))
	}
	return s, nil
}

// events is active for rules about deliveries.
func (r *run) events(ctx context.Context) (*session, error) {
	if r.described != nil && !r.handlesEvents(r.described) {
		return nil, skipped("it handles no events")
	}
	return r.active(ctx)
}

func (r *run) handlesEvents(d *extensionv1.Description) bool {
	return d.GetEvents() || d.GetChannel() || r.Spec.Agent != nil
}

// topics are topics that the extension gets, one of each subscription.
func (r *run) topics() []string { return Topics(&r.Spec) }

// Topics are topics that the subscriptions of a specification match, one of each.
func Topics(s *kernel.Spec) []string {
	var all []string
	for _, sub := range s.Permissions.Subscribe {
		all = append(all, strings.ReplaceAll(sub.Pattern, "*", "any"))
	}
	if s.Agent != nil {
		all = append(all, contract.TopicAgentInput+s.ID)
	}
	if s.Provides.Channel != nil {
		all = append(all, contract.TopicChannelSend+s.ID)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// explained is an error of a request in plain words.
func explained(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer")
	}
	return contract.FromStatus(err)
}
