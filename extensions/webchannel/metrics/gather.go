package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// states are those of an extension's process.
var states = []string{"active", "starting", "backing_off", "failed", "inactive", "disabled", "invalid", "stopping"}

// gather reads what holds now.
func (s *server) gather(ctx context.Context, f *families) error {
	status, err := s.Read.Status(ctx, &adminv1.StatusRequest{})
	if err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	f.gauge("build_info", "The kernel that runs.", 1, "version", status.GetVersion())
	f.gauge("start_time_seconds", "When the kernel started, in Unix seconds.", float64(status.GetStartedAtUs())/1e6)
	f.gauge("store_bytes", "Size of the store.", float64(status.GetStoreBytes()))
	f.gauge("problems", "Files whose last edit is not in force, and wrong links.", float64(len(status.GetProblems())))
	f.gauge("limits_reached", "Limits of spending that today reached.", float64(len(status.GetLimits())))
	for _, w := range status.GetWaiting() {
		at := []string{"extension", w.GetExtension(), "topic", w.GetTopic()}
		f.gauge("queue_deliveries", "Deliveries that are not settled.", float64(w.GetDeliveries()), at...)
		f.gauge("lanes_busy", "Of these, the deliveries that are being handled, each in a lane of its own.",
			float64(w.GetInFlight()), at...)
		oldest := 0.0
		if since := w.GetHandlingSinceUs(); since > 0 {
			oldest = max(0, s.Now().Sub(time.UnixMicro(since)).Seconds())
		}
		f.gauge("handling_seconds", "How long the oldest handler is at work; 0: none is.", oldest, at...)
	}
	extensions, err := s.Read.Extensions(ctx, &adminv1.ExtensionsRequest{})
	if err != nil {
		return fmt.Errorf("read the extensions: %w", err)
	}
	for _, x := range extensions.GetExtensions() {
		for _, state := range states {
			is := 0.0
			if x.GetState() == state {
				is = 1
			}
			f.gauge("extension_state", "1 for the state of the extension's process.", is, "extension", x.GetId(), "state", state)
		}
		ready := 0.0
		if x.GetState() == "active" && x.GetReadiness() == "ready" {
			ready = 1
		}
		f.gauge("extension_ready", "1 if the extension is active and ready.", ready, "extension", x.GetId())
		f.counter("extension_restarts_total", "Restarts of the extension's process after failures.",
			float64(x.GetRestarts()), "extension", x.GetId())
	}
	questions, err := s.Read.Questions(ctx, &adminv1.QuestionsRequest{})
	if err != nil {
		return fmt.Errorf("read the questions: %w", err)
	}
	f.gauge("questions_open", "Questions that wait for a person.", float64(len(questions.GetQuestions())))
	return nil
}

// begin counts events from now on.
func (s *server) begin(ctx context.Context) error {
	newest := int64(0)
	events, err := s.Read.Events(ctx, &adminv1.EventsRequest{Limit: 1})
	for err == nil {
		e, errRecv := events.Recv()
		if err = errRecv; err == nil {
			newest = e.GetSeq()
		}
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the newest event: %w", err)
	}
	go s.follow(s.Context, newest)
	return nil
}

// followAgain is how long following waits after it broke off.
const followAgain = time.Second

// follow counts events until ctx is done.
func (s *server) follow(ctx context.Context, after int64) {
	for ctx.Err() == nil {
		events, err := s.Read.Events(ctx, &adminv1.EventsRequest{After: after, Follow: true})
		for err == nil {
			e, errRecv := events.Recv()
			if err = errRecv; err == nil {
				after = e.GetSeq()
				s.counts.note(ctx, e)
			}
		}
		if ctx.Err() == nil {
			s.Log.Debug("follow events for metrics", "error", err)
		}
		timer := time.NewTimer(followAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}
