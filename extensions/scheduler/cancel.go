package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// cancelled is the result of cancel_schedule.
type cancelled struct {
	ID     string `json:"id"`
	Status string `json:"status"` // cancelled, removed, too_late
	// LastFire is the state of the newest fire, if there was one: withdrawn, or
	// too_late if its delivery had begun.
	LastFire string `json:"last_fire,omitempty"`
	Text     string `json:"text"`
}

func (s *scheduler) cancel(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		ID string `json:"id"`
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	r, err := s.find(ctx, c, args.ID)
	switch {
	case err != nil && r.version != 0:
		out := cancelled{ID: args.ID, Status: "removed", Text: "removed: " + args.ID + ", which was damaged"}
		return sdk.JSON(out, s.remove(args.ID, r.version))
	case err != nil:
		return sdk.ToolResult{}, err
	case r.Owner != "" && !r.Finished():
		return sdk.ToolResult{}, fmt.Errorf(
			"cancel schedule %s: the manifest of %s declares it: it can only be paused and resumed", r.ID, r.Owner)
	case r.State == schedule.Cancelled:
		return sdk.JSON(cancelled{ID: r.ID, Status: "cancelled", Text: "already cancelled: " + r.ID})
	}
	out := cancelled{ID: r.ID, Status: "cancelled", Text: "cancelled: " + r.ID + " " + quoted(r.Message, r.Topic)}
	withdrawn, err := s.withdraw(ctx, c, r.Schedule)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if r.LastKey != "" {
		due := words.LocalTime(*r.LastDue, r.Location())
		switch {
		case withdrawn:
			out.LastFire = "withdrawn"
			out.Text += "; the message due " + due + " was withdrawn before its delivery"
		case r.State == schedule.Done:
			out.LastFire, out.Status = "too_late", "too_late"
			out.Text = fmt.Sprintf("too late: %s %s, due %s, is delivered or being delivered",
				r.ID, quoted(r.Message, r.Topic), due)
			return sdk.JSON(out)
		default:
			out.LastFire = "too_late"
			out.Text += "; the message due " + due + " is delivered or being delivered"
		}
	}
	return sdk.JSON(out, s.write(r.Cancel(s.now()).ChangedFrom(r.Schedule), r.version))
}

// withdraw withdraws the newest fire unless its delivery has begun. This is a
// separate commit, because the answer depends on its result. The commit id gives
// a repeated call the same answer.
func (s *scheduler) withdraw(ctx context.Context, c sdk.ToolCall, sc schedule.Schedule) (bool, error) {
	if sc.LastKey == "" {
		return false, nil
	}
	id := ""
	if c.ID != "" {
		id = "cancel:" + c.ID + ":" + sc.LastKey
	}
	results, err := s.k.CommitOnce(ctx, id, sdk.Withdraw(sc.LastKey))
	if errors.Is(err, contract.ErrNotFound) {
		return false, nil // delivered and pruned
	}
	if err != nil {
		return false, fmt.Errorf("withdraw the last fire of schedule %s: %w", sc.ID, err)
	}
	// Without an event id, the event was already pruned.
	return len(results) == 1 && results[0].GetEventId() != "" && !results[0].GetTooLate(), nil
}

// remove returns the effect that deletes a row.
func (s *scheduler) remove(id string, version int64) sdk.Effect {
	s.expect(id, version)
	s.mu.Lock()
	delete(s.unreadable, id)
	s.mu.Unlock()
	return sdk.DeleteAt(rowKey(id), version)
}
