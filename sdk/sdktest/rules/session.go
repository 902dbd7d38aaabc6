package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

// session is one start of the extension as its kernel knows it.
type session struct {
	run         *run
	process     *Process
	conn        grpc.ClientConnInterface
	server      *server // of the kernel's services; nil before Init
	description *extensionv1.Description
	active      bool

	stream extensionv1.Events_DeliverClient // nil: it handles no events
	cancel context.CancelFunc               // of the stream

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	credit   int
	given    int // credit so far
	outcomes map[string][]*busv1.Outcome
	lost     error // why the stream has ended
}

func newSession(r *run, p *Process) *session {
	return &session{
		run: r, process: p, conn: contract.ConnTo(r.Spec.ID, p.Conn), changed: make(chan struct{}),
		outcomes: map[string][]*busv1.Outcome{},
	}
}

func (s *session) close() {
	s.process.Kill()
	s.closeStream()
	if s.server != nil {
		s.server.stop()
	}
}

func (s *session) closeStream() {
	if s.cancel != nil {
		s.cancel()
	}
	s.mu.Lock()
	s.stream = nil
	s.mu.Unlock()
}

func (s *session) extension() extensionv1.ExtensionClient {
	return extensionv1.NewExtensionClient(s.conn)
}

// describe asks for the description, within the patience.
func (s *session) describe(ctx context.Context) (*extensionv1.Description, error) {
	ctx, cancel := s.run.within(ctx)
	defer cancel()
	return s.extension().Describe(ctx, &extensionv1.DescribeRequest{})
}

// initialize calls Init for a new generation, and opens the stream of deliveries.
func (s *session) initialize(ctx context.Context) error {
	r := s.run
	if s.server == nil {
		var err error
		if s.server, err = r.kernel.serve(r.SocketDir); err != nil {
			return err
		}
	}
	r.generation++
	request := &extensionv1.InitRequest{
		Id: r.Spec.ID, Name: r.Spec.Name, Generation: r.generation, KernelAddress: s.server.address,
		KernelToken: r.kernel.token(), Config: r.Spec.Config, Secrets: r.Spec.Secrets, RunDir: r.Spec.RunDir,
		DataDir: r.Spec.DataDir, Timezone: "UTC",
	}
	if r.Spec.Agent != nil {
		request.Agent = r.Spec.Agent.Spec
	}
	bounded, cancel := r.starting(ctx)
	defer cancel()
	if _, err := s.extension().Init(bounded, request); err != nil {
		return err
	}
	s.active = true
	if r.handlesEvents(s.description) {
		return s.open(ctx)
	}
	return nil
}

// open opens the stream of deliveries.
func (s *session) open(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	stream, err := extensionv1.NewEventsClient(s.conn).Deliver(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.stream, s.credit, s.given, s.lost = stream, 0, 0, nil
	s.mu.Unlock()
	go s.read(stream)
	return nil
}

func (s *session) read(stream extensionv1.Events_DeliverClient) {
	for {
		frame, err := stream.Recv()
		s.mu.Lock()
		if err != nil {
			if s.stream == stream {
				s.lost = contract.FromStatus(err)
			}
			s.tell()
			s.mu.Unlock()
			return
		}
		s.credit += int(frame.GetCredit())
		s.given += int(frame.GetCredit())
		if frame.GetCredit() < 0 {
			s.run.kernel.note("outcomes", fmt.Sprintf("a frame gives the credit %d", frame.GetCredit()))
		}
		for _, o := range frame.GetOutcomes() {
			s.outcomes[o.GetToken()] = append(s.outcomes[o.GetToken()], o)
			s.run.kernel.answered(o)
		}
		s.tell()
		s.mu.Unlock()
	}
}

// tell wakes those that wait. The caller holds mu.
func (s *session) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// wait waits until the condition, which is asked with mu held, is true.
func (s *session) wait(ctx context.Context, what string, reached func() bool) error {
	timer := time.NewTimer(s.run.patience)
	defer timer.Stop()
	for {
		s.mu.Lock()
		ok, changed, lost := reached(), s.changed, s.lost
		s.mu.Unlock()
		switch {
		case ok:
			return nil
		case lost != nil:
			return s.why(fmt.Errorf("%s: the stream of deliveries ended: %w", what, lost))
		}
		select {
		case <-changed:
		case <-s.process.Gone:
			return s.why(errors.New(what + ": the process ended"))
		case <-timer.C:
			return fmt.Errorf("%s: nothing within %s", what, s.run.patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// why adds to an error how the process ended, if it did, and what it printed.
func (s *session) why(err error) error {
	if status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", s.run.patience)
	}
	grace := time.NewTimer(exitNotice) // a broken connection is known before the exit
	defer grace.Stop()
	if c := status.Code(err); c != codes.Unavailable && !errors.Is(err, contract.ErrGone) {
		grace.Reset(0)
	}
	select {
	case <-s.process.Gone:
	case <-grace.C:
		select {
		case <-s.process.Gone:
		default:
			return contract.FromStatus(err)
		}
	}
	_, reason := s.process.Exit()
	if lines := s.process.Stderr(); len(lines) > 0 {
		reason += "; it printed: " + strings.Join(lines[:min(len(lines), 3)], " / ")
	}
	return fmt.Errorf("%w (%s)", contract.FromStatus(err), reason)
}

// exitNotice is how long after its connection broke the end of a process may be noticed.
const exitNotice = 500 * time.Millisecond

// ended reports whether the process has ended.
func (s *session) ended() bool {
	select {
	case <-s.process.Gone:
		return true
	default:
		return false
	}
}

// hand hands out a delivery as soon as there is credit for it.
func (s *session) hand(ctx context.Context, deliveries ...*busv1.Delivery) error {
	for range deliveries {
		if err := s.wait(ctx, "credit for a delivery", func() bool { return s.credit > 0 }); err != nil {
			return err
		}
		s.mu.Lock()
		s.credit--
		s.mu.Unlock()
	}
	return s.send(&extensionv1.DeliverFrame{Deliveries: deliveries})
}

// send sends a frame whether or not there is credit.
func (s *session) send(frame *extensionv1.DeliverFrame) error {
	for _, d := range frame.GetDeliveries() {
		s.run.kernel.lend(d.GetToken())
	}
	if err := s.stream.Send(frame); err != nil {
		return s.why(fmt.Errorf("send a delivery: %w", err))
	}
	return nil
}

// answers waits for the outcomes of deliveries, in their order.
func (s *session) answers(ctx context.Context, deliveries ...*busv1.Delivery) (all []*busv1.Outcome, err error) {
	for _, d := range deliveries {
		what := fmt.Sprintf("the outcome of a delivery of %s", d.GetEvent().GetTopic())
		if err := s.wait(ctx, what, func() bool { return len(s.outcomes[d.GetToken()]) > 0 }); err != nil {
			return nil, err
		}
		s.mu.Lock()
		all = append(all, s.outcomes[d.GetToken()][0])
		s.mu.Unlock()
	}
	return all, nil
}

// deliver hands out deliveries and waits for their outcomes.
func (s *session) deliver(ctx context.Context, deliveries ...*busv1.Delivery) ([]*busv1.Outcome, error) {
	if err := s.hand(ctx, deliveries...); err != nil {
		return nil, err
	}
	return s.answers(ctx, deliveries...)
}

// health asks whether the extension is alive.
func (s *session) health(ctx context.Context) (*extensionv1.Readiness, error) {
	ctx, cancel := s.run.within(ctx)
	defer cancel()
	readiness, err := s.extension().Health(ctx, &extensionv1.HealthRequest{})
	if err != nil {
		return nil, fmt.Errorf("call Health: %w", s.why(err))
	}
	return readiness, nil
}
