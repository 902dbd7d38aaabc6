package heartbeat

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// stateKey is where everything is stored.
const stateKey = "state"

// state is what the heartbeat remembers.
type state struct {
	Figures figures `json:"figures"`
	// By the marks of items, Unix seconds: when the scout was asked last, and when
	// an escalation was made.
	Asked     map[string]int64 `json:"asked,omitempty"`
	Escalated map[string]int64 `json:"escalated,omitempty"`
	// Settled are those that the scout said were done.
	Settled map[string]int64 `json:"settled,omitempty"`
	// Reasons are escalations that named no items, by what they said.
	Reasons map[string]int64 `json:"reasons,omitempty"`

	// Recent are the last escalations, the newest last: who follows them finds
	// their events by these keys.
	Recent []recent `json:"recent,omitempty"`
	// Failures is how many answers of the scout have broken off in a row.
	Failures int `json:"failures,omitempty"`

	version int64
}

// maxRecent is how many escalations are kept to be followed.
const maxRecent = 50

// recent is one escalation.
type recent struct {
	Key    string    `json:"key"` // the dedupe key of its event
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

func (s *state) note(r recent) {
	s.Recent = append(s.Recent, r)
	s.Recent = s.Recent[max(0, len(s.Recent)-maxRecent):]
}

// figures is what became of the beats since the beginning.
type figures struct {
	Runs         int64            `json:"runs"`
	Skipped      map[string]int64 `json:"skipped,omitempty"` // without asking a model, by reason
	ModelCalls   int64            `json:"model_calls"`
	ModelErrors  int64            `json:"model_errors,omitempty"`
	Invalid      int64            `json:"invalid,omitempty"` // answers that could not be read
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Noops        int64            `json:"noops"`
	Done         int64            `json:"done"`
	Escalations  int64            `json:"escalations"`
	Repeated     int64            `json:"repeated,omitempty"` // escalations within their cool-down, which were not made

	LastRun        *time.Time `json:"last_run,omitempty"`
	LastResult     string     `json:"last_result,omitempty"`
	LastCall       *time.Time `json:"last_call,omitempty"`
	LastEscalation *time.Time `json:"last_escalation,omitempty"`
	Problem        string     `json:"problem,omitempty"` // why the last look failed
}

func (h *heartbeat) load(ctx context.Context) (*state, error) {
	v, err := h.k.Get(ctx, stateKey)
	if err != nil {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	s := &state{}
	if v.Version != 0 {
		if err := v.Decode(s); err != nil {
			h.log.Error("the stored state cannot be read: beginning anew", "error", err)
			s = &state{Figures: figures{Problem: "what was stored cannot be read: " + err.Error()}}
		}
	}
	s.version = v.Version
	for _, m := range []*map[string]int64{&s.Asked, &s.Escalated, &s.Settled, &s.Reasons, &s.Figures.Skipped} {
		if *m == nil {
			*m = map[string]int64{}
		}
	}
	return s, nil
}

func (s *state) effect() sdk.Effect { return sdk.PutAt(stateKey, s, s.version) }

// forget drops what no decision depends on any more. A time ahead of now, from a
// clock that was set back since, counts as none.
func (s *state) forget(now time.Time, cooldown time.Duration, items []item) {
	old := func(_ string, at int64) bool { return !within(at, now, cooldown) }
	maps.DeleteFunc(s.Asked, old)
	maps.DeleteFunc(s.Escalated, old)
	maps.DeleteFunc(s.Reasons, old)
	there := map[string]bool{}
	for _, i := range items {
		there[i.mark] = true
	}
	maps.DeleteFunc(s.Settled, func(mark string, _ int64) bool { return !there[mark] })
}

func within(at int64, now time.Time, d time.Duration) bool {
	age := now.Sub(time.Unix(at, 0))
	return age >= -time.Minute && age < d
}

// open are the items that may be brought up, as many as fit into one question:
// not those that were brought up a short time ago, or that are settled. News
// says whether the scout has not been asked about one of them yet; those stand
// first.
func (s *state) open(items []item) (open []item, news bool) {
	var known []item
	for _, i := range items {
		switch {
		case s.Settled[i.mark] != 0 || s.Escalated[i.mark] != 0:
		case s.Asked[i.mark] != 0:
			known = append(known, i)
		default:
			open = append(open, i)
		}
	}
	news = len(open) > 0
	open = append(open, known...)
	return open[:min(len(open), maxItems)], news
}
