package heartbeat

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// stateKey is the key of the owner's state, and the beginning of those of other people.
const stateKey = "state"

// state is the stored state of one person's heartbeat.
type state struct {
	Figures figures `json:"figures"`
	// Asked and Escalated are the times (Unix seconds) of the last question and
	// escalation, by mark of item.
	Asked     map[string]int64 `json:"asked,omitempty"`
	Escalated map[string]int64 `json:"escalated,omitempty"`
	// Settled are the marks of items that the scout called done.
	Settled map[string]int64 `json:"settled,omitempty"`
	// Reasons are the times of escalations by their normalized reason.
	Reasons map[string]int64 `json:"reasons,omitempty"`

	// Recent are the last escalations, the newest last, with the keys of their
	// events.
	Recent []recent `json:"recent,omitempty"`
	// Failures is the number of consecutive failed answers of the scout.
	Failures int `json:"failures,omitempty"`

	key     string
	version int64
}

// maxRecent is the most escalations in Recent.
const maxRecent = 50

// recent is one escalation.
type recent struct {
	Key    string    `json:"key"` // the dedupe key of its event
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

func (s *state) addRecent(r recent) {
	s.Recent = append(s.Recent, r)
	s.Recent = s.Recent[max(0, len(s.Recent)-maxRecent):]
}

// figures are the counts of beats and their results.
type figures struct {
	Runs         int64            `json:"runs"`
	Skipped      map[string]int64 `json:"skipped,omitempty"` // by reason
	ModelCalls   int64            `json:"model_calls"`
	ModelErrors  int64            `json:"model_errors,omitempty"`
	Invalid      int64            `json:"invalid,omitempty"` // invalid answers
	InputTokens  int64            `json:"input_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Noops        int64            `json:"noops"`
	Done         int64            `json:"done"`
	Escalations  int64            `json:"escalations"`
	Repeated     int64            `json:"repeated,omitempty"` // escalations suppressed by the cool-down

	LastRun        *time.Time `json:"last_run,omitempty"`
	LastResult     string     `json:"last_result,omitempty"`
	LastCall       *time.Time `json:"last_call,omitempty"`
	LastEscalation *time.Time `json:"last_escalation,omitempty"`
	Problem        string     `json:"problem,omitempty"` // why the last beat failed
}

func (h *heartbeat) load(ctx context.Context, key string) (*state, error) {
	v, err := h.k.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s := &state{}
	if v.Version != 0 {
		if err := v.Decode(s); err != nil {
			h.log.Error("the stored state is damaged and was reset", "error", err)
			s = &state{Figures: figures{Problem: "the stored state was damaged and was reset: " + err.Error()}}
		}
	}
	s.key, s.version = key, v.Version
	for _, m := range []*map[string]int64{&s.Asked, &s.Escalated, &s.Settled, &s.Reasons, &s.Figures.Skipped} {
		if *m == nil {
			*m = map[string]int64{}
		}
	}
	return s, nil
}

func (s *state) effect() sdk.Effect { return sdk.PutAt(s.key, s, s.version) }

// prune removes entries that no longer matter, and entries in the future, which
// are from before the clock was set back.
func (s *state) prune(now time.Time, cooldown time.Duration, items []item) {
	old := func(_ string, at int64) bool { return !within(at, now, cooldown) }
	maps.DeleteFunc(s.Asked, old)
	maps.DeleteFunc(s.Escalated, old)
	maps.DeleteFunc(s.Reasons, old)
	exists := map[string]bool{}
	for _, i := range items {
		exists[i.mark] = true
	}
	maps.DeleteFunc(s.Settled, func(mark string, _ int64) bool { return !exists[mark] })
}

func within(at int64, now time.Time, d time.Duration) bool {
	age := now.Sub(time.Unix(at, 0))
	return age >= -time.Minute && age < d
}

// open returns the items for a question, without settled and recently escalated
// ones. Items that the scout has not seen come first; isNew reports whether there
// are any.
func (s *state) open(items []item) (open []item, isNew bool) {
	var seen []item
	for _, i := range items {
		switch {
		case s.Settled[i.mark] != 0 || s.Escalated[i.mark] != 0:
		case s.Asked[i.mark] != 0:
			seen = append(seen, i)
		default:
			open = append(open, i)
		}
	}
	isNew = len(open) > 0
	open = append(open, seen...)
	return open[:min(len(open), maxItems)], isNew
}
