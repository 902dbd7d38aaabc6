package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
)

const (
	// commandCredit is how many commands an extension that handles no events may have
	// in flight.
	commandCredit = 16
	// defaultStreamLossGrace is how long a process may run without its event stream.
	defaultStreamLossGrace = 10 * time.Second
	// lastFrames is how long the answers of an extension that has shut down are read. They
	// were sent before it said so, and nothing but a handler that doesn't end holds them up.
	lastFrames = 5 * time.Second
)

// deliver carries deliveries to an extension and outcomes back, until it is gone. If
// the stream ends and the process does not, the process has to be restarted.
func (h *Host) deliver(g *instance, sink *bus.Sink) {
	err := h.exchange(g, sink)
	if !errors.Is(err, io.EOF) {
		sink.Lost()
	}
	close(g.read)
	select {
	case <-g.ctx.Done():
		return
	case <-h.stopped.Done():
		return
	case <-time.After(h.streamLossGrace):
	}
	h.Log.Error("the event stream ended", "extension", g.actor.ID, "error", err)
	h.Stuck(g.actor.ID, g.actor.Generation, fmt.Sprintf("the event stream ended: %v", err))
}

func (h *Host) exchange(g *instance, sink *bus.Sink) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.ctx))
	defer context.AfterFunc(h.stopped, cancel)()
	defer context.AfterFunc(g.ctx, func() {
		if g.handlesEvents() {
			defer time.AfterFunc(lastFrames, cancel).Stop()
			<-ctx.Done()
		}
		cancel()
	})()
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	commands := &commandCalls{host: h, instance: g, sink: sink}
	defer commands.calls.Wait()
	if !g.handlesEvents() {
		sink.Credit(commandCredit)
		for {
			frame, ok := sink.Next(ctx)
			if !ok {
				<-ctx.Done()
				return ctx.Err()
			}
			for _, d := range commands.take(ctx, frame).Deliveries {
				h.Bus.Outcome(g.actor, outcome(d, busv1.Outcome_KIND_FAIL, "the extension handles no events"))
			}
		}
	}
	stream, err := extensionv1.NewEventsClient(g.conn).Deliver(ctx)
	if err != nil {
		return err
	}
	sending.Go(func() {
		defer cancel()
		for {
			frame, ok := sink.Next(ctx)
			if !ok {
				return
			}
			frame = commands.take(ctx, frame)
			if len(frame.Deliveries) == 0 && len(frame.Cancels) == 0 {
				continue
			}
			if stream.Send(&extensionv1.DeliverFrame{Deliveries: frame.Deliveries, Cancels: frame.Cancels}) != nil {
				return
			}
		}
	})
	for {
		frame, err := stream.Recv()
		if err != nil {
			return err
		}
		if len(frame.GetOutcomes()) > 0 {
			h.admission.note(g.actor)
		}
		sink.Credit(int(frame.GetCredit()))
		h.Bus.Outcomes(g.actor, frame.GetOutcomes())
	}
}

func outcome(d *busv1.Delivery, kind busv1.Outcome_Kind, reason string) *busv1.Outcome {
	return &busv1.Outcome{Token: d.GetToken(), Kind: kind, Reason: reason}
}

// CallTool implements tools.Remote.
func (h *Host) CallTool(ctx context.Context, extension string, r *extensionv1.CallRequest,
) (*extensionv1.CallResult, error) {
	g := h.instance(extension)
	if g == nil {
		return nil, fmt.Errorf("%w: %s is not running", contract.ErrUnavailable, extension)
	}
	return h.callTool(ctx, g, r)
}

func (h *Host) callTool(ctx context.Context, g *instance, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	ctx, cancel := g.bound(ctx)
	defer cancel()
	var reached peer.Peer
	result, err := extensionv1.NewToolsClient(g.conn).Call(ctx, r, grpc.Peer(&reached))
	if err != nil {
		g.failed(err)
		if reached.Addr == nil && status.Code(err) == codes.Unavailable {
			return nil, fmt.Errorf("%w: %s cannot be reached", contract.ErrUnavailable, g.actor.ID) // and did not get the call
		}
		return nil, gone(g, err)
	}
	return result, nil
}

// gone returns the error of a call; if the process has ended, that is the error.
func gone(g *instance, err error) error {
	if g.ctx.Err() != nil {
		return fmt.Errorf("%w: the extension %s ended during the call", contract.ErrGone, g.actor.ID)
	}
	return contract.FromStatus(err)
}

// Complete implements models.Remote.
func (h *Host) Complete(ctx context.Context, extension string, r *extensionv1.CompleteRequest,
	emit func(*extensionv1.Delta) error,
) error {
	g := h.instance(extension)
	if g == nil {
		return fmt.Errorf("the extension %s: %w", extension, models.ErrNotRunning)
	}
	ctx, cancel := g.bound(ctx)
	defer cancel()
	if file := r.GetRecording(); file != nil { // read with a lease of no call, under which nothing can be committed
		turn := &bus.Lease{Session: journal.ParseSessionID(r.GetSession())}
		l := h.Bus.LeaseCall(g.actor, turn, &busv1.Event{}, -1)
		defer h.Bus.Release(l)
		file.Lane = l.Token
	}
	stream, err := extensionv1.NewModelsClient(g.conn).Complete(ctx, r)
	if err != nil {
		return interrupted(g, err)
	}
	for {
		d, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return interrupted(g, err)
		}
		if err := emit(d); err != nil {
			return err
		}
	}
}

// interrupted is gone for a completion: one that a stopping provider ended can be
// repeated.
func interrupted(g *instance, err error) error {
	err = gone(g, err)
	if g.stopping.Load() && !errors.Is(err, contract.ErrGone) {
		return fmt.Errorf("%w: the extension %s was stopped during the call (%s)", contract.ErrGone, g.actor.ID, err.Error())
	}
	return err
}
