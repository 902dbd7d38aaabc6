package models_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/models"
)

// remote is one function as a remote.
type remote func(ctx context.Context, extension string, emit func(*extensionv1.Delta) error) error

func (r remote) Complete(
	ctx context.Context,
	extension string,
	_ *extensionv1.CompleteRequest,
	emit func(*extensionv1.Delta) error,
) error {
	return r(ctx, extension, emit)
}

// spend has the providers a and b, of which the second answers too, and returns
// what was recorded as "model input output estimated".
func spend(w *kerneltest.World, limits map[string]int64, r remote, orders ...func(*models.Router)) []string {
	w.Know(func(s *directory.Snapshot) {
		s.Models, s.ModelOrder, s.Limits = []directory.Provider{
			active("a", "a/m"),
			active("b", "b/m"),
			fallback("offline", "offline/grammar"),
		}, []string{
			"a/m",
			"b/m",
		}, daily(limits)
	})
	router := &models.Router{
		Directory: w.Directory,
		Remote:    r,
		Ledger:    models.NewLedger(w.Bus, w.Directory, hclog.NewNullLogger()),
	}
	for _, o := range orders {
		o(router)
	}
	w.Wait(journal.LazyDelay)
	recorded := []string{}
	for _, e := range w.Events(contract.TopicModelUsage) {
		u := kerneltest.Decode[contract.ModelUsage](w.T, e)
		recorded = append(recorded, fmt.Sprint(u.Model, " ", u.InputTokens, " ", u.OutputTokens, " ", u.Estimated))
	}
	return recorded
}

// An image is not counted by its bytes.
func TestImagesAreEstimatedByTheirNumber(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		image := &extensionv1.Image{Mime: "image/jpeg", Data: make([]byte, 1<<20)}
		got := spend(w, nil, func(_ context.Context, _ string, emit func(*extensionv1.Delta) error) error {
			return emit(&extensionv1.Delta{Text: "12345678"})
		}, func(r *models.Router) {
			if err := r.Complete(w.T.Context(), models.Order{Model: "a/m", Request: &extensionv1.CompleteRequest{
				Agent: "chat", Messages: []*extensionv1.Message{{Images: []*extensionv1.Image{image, image}}},
			}}, func(*extensionv1.Delta) error { return nil }); err != nil {
				w.T.Error(err)
			}
		})
		if fmt.Sprint(got) != "[a/m 3214 2 true]" {
			w.T.Errorf("recorded is %s", got)
		}
	})
}

func TestWhatIsRecorded(t *testing.T) {
	told := &extensionv1.Usage{InputTokens: 100, OutputTokens: 10}
	lie := &extensionv1.Usage{InputTokens: math.MaxInt64, OutputTokens: -5}
	failed := errors.New("500 broken")
	for name, test := range map[string]struct {
		deltas []*extensionv1.Delta
		err    error
		stop   bool // it is cancelled while it is under way
		model  string
		want   string
	}{
		"what the provider says":              {[]*extensionv1.Delta{{Text: "hi", Model: "a/mini"}, {Usage: told}}, nil, false, "a/m", "[a/mini 100 10 false]"},
		"no more than can be added up":        {[]*extensionv1.Delta{{Text: "hi"}, {Usage: lie}}, nil, false, "a/m", "[a/m 1099511627776 0 false]"},
		"of what fails in the end, too":       {[]*extensionv1.Delta{{Text: "hi"}, {Usage: told}}, failed, false, "a/m", "[a/m 100 10 false]"},
		"what breaks off is estimated":        {[]*extensionv1.Delta{{Text: "12345678"}}, failed, false, "a/m", "[a/m 102 2 true]"},
		"what is cut off by a cancel":         {[]*extensionv1.Delta{{Text: "12345678"}}, nil, true, "a/m", "[a/m 102 2 true]"},
		"what is cancelled before it answers": {nil, nil, true, "a/m", "[a/m 102 0 true]"},
		"what says nothing at all":            {[]*extensionv1.Delta{{Text: "1234"}, {Finish: "stop"}}, nil, false, "a/m", "[a/m 102 1 true]"},
		"nothing of what was refused":         {nil, failed, false, "a/m", "[]"},
		"nothing of the offline model":        {[]*extensionv1.Delta{{Text: "hi"}}, nil, false, "offline/grammar", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			kerneltest.Run(t, func(w *kerneltest.World) {
				ctx, cancel := context.WithCancel(w.T.Context())
				defer cancel()
				got := spend(w, nil, func(ctx context.Context, _ string, emit func(*extensionv1.Delta) error) error {
					for _, d := range test.deltas {
						if err := emit(d); err != nil {
							return err
						}
					}
					if test.stop {
						cancel()
						return ctx.Err()
					}
					return test.err
				}, func(r *models.Router) {
					err := r.Complete(ctx, models.Order{Model: test.model, Request: &extensionv1.CompleteRequest{
						Agent: "chat", Session: "s1", Messages: []*extensionv1.Message{{Content: strings.Repeat("x", 388)}},
					}}, func(*extensionv1.Delta) error { return nil })
					if (err != nil) != (test.err != nil || test.stop) {
						w.T.Errorf("it ended with %v", err)
					}
				})
				if fmt.Sprint(got) != test.want {
					w.T.Errorf("recorded is %s, want %s", got, test.want)
				}
			})
		})
	}
}

// A model whose limit is reached is passed over while another one may answer;
// then a sentence says why nobody does.
func TestAModelWhoseLimitIsReached(t *testing.T) {
	kerneltest.Run(t, func(w *kerneltest.World) {
		var asked []string
		answer := func(_ context.Context, extension string, emit func(*extensionv1.Delta) error) error {
			asked = append(asked, extension)
			return emit(&extensionv1.Delta{Text: "hi", Usage: &extensionv1.Usage{InputTokens: 50}})
		}
		var last error
		complete := func(r *models.Router) {
			last = r.Complete(w.T.Context(), order(), func(*extensionv1.Delta) error { return nil })
		}
		spend(w, map[string]int64{"a/m": 100, "b/m": 50}, answer, complete, complete, complete)
		if got := fmt.Sprint(asked); got != "[a a b]" || last != nil {
			w.T.Errorf("asked were %s: %v", got, last)
		}
		spend(w, map[string]int64{"a/m": 100, "b/m": 50}, answer, complete)
		if len(asked) != 3 || !errors.Is(last, contract.ErrUnavailable) ||
			!strings.Contains(
				last.Error(),
				"100 tokens for a/m is reached",
			) || !strings.Contains(last.Error(), "50 tokens for b/m is reached") {
			w.T.Errorf("asked were %v: %v", asked, last)
		}
		spend(w, map[string]int64{"total": 150}, answer, complete)
		if len(asked) != 3 || !errors.Is(last, contract.ErrUnavailable) ||
			strings.Count(last.Error(), "for all models is reached") != 1 {
			w.T.Errorf("asked were %v: %v", asked, last)
		}
		spend(w, map[string]int64{"total": 151}, answer, complete) // one more token
		if len(asked) != 4 || last != nil {
			w.T.Errorf("asked were %v: %v", asked, last)
		}
	})
}
