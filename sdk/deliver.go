package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
)

const (
	// maxRunning is the number of deliveries that one extension handles at once.
	maxRunning = 1024
	// initialCredit is the number of deliveries that may wait for handlers.
	initialCredit = 1024
	// outcomeBytes approximates the size of an outcome without reason and effects.
	outcomeBytes = 64
)

var errBroken = errors.New("the connection to the kernel broke")

type deliverServer = grpc.BidiStreamingServer[extensionv1.DeliverFrame, extensionv1.OutcomeFrame]

// deliveries is one Deliver stream: deliveries come in, goroutines handle them, and
// outcomes leave in frames. A goroutine that takes a delivery while others are
// queued starts another goroutine, unless one is already starting. So blocked
// handlers have a goroutine each, and quick ones share a few. The kernel sends at
// most one delivery of a lane at a time, so no ordering is needed here.
type deliveries struct {
	handle AgentHandler
	log    hclog.Logger
	base   context.Context // of every handler
	wake   chan struct{}   // capacity 1: there is something to send

	mu       sync.Mutex
	queue    []*busv1.Delivery
	head     int  // of queue
	running  int  // goroutines
	starting bool // one of them has not started yet
	active   []*delivery
	outcomes []*busv1.Outcome
	credit   int32
	ending   bool // take no more deliveries; wake once when idle
}

// delivery is the state of one handler run, in one allocation.
type delivery struct {
	laneContext
	outcome busv1.Outcome
	index   int // in active
}

func newDeliveries(base context.Context, log hclog.Logger, handle AgentHandler) *deliveries {
	return &deliveries{
		handle: handle, log: log, base: base,
		wake:   make(chan struct{}, 1),
		credit: initialCredit,
	}
}

// serve runs the stream until the kernel closes it or the extension has drained. If
// the stream breaks, it cancels running handlers, whose outcomes would be lost.
func (s *deliveries) serve(stream deliverServer, cancel context.CancelCauseFunc) error {
	received := make(chan error, 1)
	go func() { received <- s.receive(stream) }()
	s.signal() // the first credit
	for {
		select {
		case err := <-received:
			if err != nil {
				s.abandon(cancel)
				return err
			}
			received = nil
			s.end()
		case <-s.wake:
		}
		runtime.Gosched() // lets handlers that are about to finish join the frame
		for {
			frame, idle := s.frame()
			if frame == nil {
				if idle {
					return nil
				}
				break
			}
			if err := stream.Send(frame); err != nil {
				s.abandon(cancel)
				return err
			}
		}
	}
}

// abandon cancels the handlers of a broken stream and waits for them.
func (s *deliveries) abandon(cancel context.CancelCauseFunc) {
	cancel(errBroken)
	s.end()
	for {
		if frame, idle := s.frame(); frame == nil && idle {
			return
		} else if frame == nil {
			<-s.wake
		}
	}
}

func (s *deliveries) receive(stream deliverServer) error {
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.take(frame)
	}
}

// take queues the deliveries of a frame and cancels those that it names.
func (s *deliveries) take(frame *extensionv1.DeliverFrame) {
	s.mu.Lock()
	if !s.ending {
		s.queue = append(s.queue, frame.GetDeliveries()...)
		s.start()
	}
	var cancels []*delivery
	for _, token := range frame.GetCancels() {
		if i := slices.IndexFunc(s.active, func(d *delivery) bool { return d.token == token }); i >= 0 {
			cancels = append(cancels, s.active[i])
		}
		s.unqueue(token)
	}
	s.mu.Unlock()
	for _, d := range cancels {
		d.end(ErrEnded)
	}
}

// unqueue answers a delivery that was cancelled before a handler took it.
func (s *deliveries) unqueue(token string) {
	for i := s.head; i < len(s.queue); i++ {
		if s.queue[i].GetToken() == token {
			s.queue = append(s.queue[:i], s.queue[i+1:]...)
			s.credit++
			s.answer(&busv1.Outcome{Token: token, Kind: busv1.Outcome_KIND_RETRY, Reason: ErrEnded.Error()})
			return
		}
	}
}

// start starts a goroutine if a delivery waits for one. The caller holds s.mu.
func (s *deliveries) start() {
	if s.head < len(s.queue) && !s.starting && s.running < maxRunning {
		s.starting = true
		s.running++
		go s.work()
	}
}

// work handles deliveries until the queue is empty.
func (s *deliveries) work() {
	s.mu.Lock()
	s.starting = false
	s.mu.Unlock()
	var done *delivery
	for {
		in, d := s.next(done)
		if in == nil {
			return
		}
		effects, err := s.run(d, in)
		settle(&d.outcome, effects, err)
		d.finish()
		done = d
	}
}

// next queues the outcome of a goroutine's last delivery and returns the next one;
// nil ends the goroutine.
func (s *deliveries) next(done *delivery) (*busv1.Delivery, *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done != nil {
		last := len(s.active) - 1
		s.active[done.index] = s.active[last]
		s.active[done.index].index = done.index
		s.active[last] = nil
		s.active = s.active[:last]
		s.answer(&done.outcome)
	}
	if s.head == len(s.queue) || s.ending {
		s.running--
		if s.ending && s.running == 0 {
			s.signal()
		}
		return nil, nil
	}
	in := s.queue[s.head]
	s.queue[s.head] = nil
	if s.head++; s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
	s.credit++
	if s.credit == 1 { // a quick handler's outcome shares its frame
		s.signal()
	}
	d := &delivery{}
	d.base, d.token = s.base, in.GetToken()
	d.outcome.Token = in.GetToken()
	if us := in.GetDeadlineUs(); us != 0 {
		now := time.Now()
		d.deadline = now.Add(time.UnixMicro(us).Sub(now)) // on the monotonic clock
	}
	d.index = len(s.active)
	s.active = append(s.active, d)
	s.start()
	return in, d
}

func (s *deliveries) run(d *delivery, in *busv1.Delivery) (effects Effects, err error) {
	defer guard(s.log, "handler", &err)
	effects, err = s.handle(&d.laneContext, deliveryOf(in, d.deadline))
	return effects, interrupted(&d.laneContext, err)
}

func deliveryOf(in *busv1.Delivery, deadline time.Time) Delivery {
	e := in.GetEvent()
	return Delivery{
		Event: eventOf(e), Attempt: int(in.GetAttempt()), Uncertain: in.GetUncertain(),
		Deadline: deadline, Token: in.GetToken(), Turn: in.GetTurn(),
	}
}

func eventOf(e *busv1.Event) Event {
	return Event{
		Seq: e.GetSeq(), ID: e.GetId(), Topic: e.GetTopic(), Key: e.GetKey(), Source: e.GetSource(),
		Payload: e.GetPayload(), CorrelationID: e.GetCorrelationId(), CausationID: e.GetCausationId(), Hop: int(e.GetHop()),
		CreatedAt: time.UnixMicro(e.GetCreatedAtUs()),
	}
}

// answer queues an outcome. The caller holds s.mu.
func (s *deliveries) answer(o *busv1.Outcome) {
	s.outcomes = append(s.outcomes, o)
	if len(s.outcomes) == 1 {
		s.signal()
	}
}

func (s *deliveries) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// end takes no more deliveries and lets running handlers finish.
func (s *deliveries) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	s.queue, s.head = nil, 0
	if s.running == 0 {
		s.signal()
	}
}

// frame returns the next frame to send, or nil; idle reports that no other will
// follow.
func (s *deliveries) frame() (frame *extensionv1.OutcomeFrame, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.outcomes) == 0 && (s.credit == 0 || s.ending) {
		return nil, s.ending && s.running == 0
	}
	n, size := 0, 0
	for n < len(s.outcomes) {
		o := s.outcomes[n]
		if size += len(o.GetReason()) + outcomeBytes; len(o.GetEffects()) != 0 {
			size += proto.Size(o)
		}
		if size > frameBytes && n > 0 {
			break
		}
		n++
	}
	frame = &extensionv1.OutcomeFrame{Credit: s.credit}
	if n == len(s.outcomes) {
		frame.Outcomes, s.outcomes = s.outcomes, make([]*busv1.Outcome, 0, n)
	} else {
		frame.Outcomes = append(frame.Outcomes, s.outcomes[:n]...)
		s.outcomes = shift(s.outcomes, n)
	}
	s.credit = 0
	return frame, false
}

// dispatch passes a delivery to its handler.
func (a *activation) dispatch(ctx context.Context, d Delivery) (Effects, error) {
	x := &a.instance.ext
	switch {
	case d.Topic == a.sendTopic && x.Channel != nil:
		return send(ctx, x.Channel, d)
	case d.Topic == a.inputTopic && x.HandleAgent != nil:
		return x.HandleAgent(ctx, d)
	case d.Topic == a.resultTopic && x.Results != nil:
		return a.result(ctx, d.Event)
	case x.Handle != nil:
		return x.Handle(ctx, d.Event)
	case d.Topic == a.resultTopic:
		return nil, nil
	default:
		return nil, Drop(fmt.Sprintf("extension %s has no handler for topic %s", a.kernel.ID(), d.Topic))
	}
}
