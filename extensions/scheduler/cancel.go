package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

// cancelled is the result of cancel_schedule.
type cancelled struct {
	ID     string `json:"id"`
	Status string `json:"status"` // cancelled, removed, too_late
	// LastFire says what became of the newest fire, if there was one:
	// withdrawn, or too_late when its delivery had begun.
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
	r, err := s.find(ctx, args.ID)
	switch {
	case err != nil && r.version != 0:
		return sdk.JSON(cancelled{ID: args.ID, Status: "removed", Text: args.ID + " could not be read and is removed"}, s.remove(args.ID, r.version))
	case err != nil:
		return sdk.ToolResult{}, err
	case r.Owner != "" && !r.Finished():
		return sdk.ToolResult{}, fmt.Errorf("%s is declared by the manifest of %s and cannot be cancelled, only paused", r.ID, r.Owner)
	case r.State == schedule.Cancelled:
		return sdk.JSON(cancelled{ID: r.ID, Status: "cancelled", Text: r.ID + " was cancelled before"})
	}
	out := cancelled{ID: r.ID, Status: "cancelled", Text: "cancelled: " + r.ID + " " + quoted(r.Message, r.Topic)}
	withdrawn, err := s.withdraw(ctx, c, r.Schedule)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if r.LastKey != "" {
		due := schedule.LocalTime(*r.LastDue, r.Location())
		switch {
		case withdrawn:
			out.LastFire = "withdrawn"
			out.Text += "; what was due " + due + " is withdrawn before its delivery"
		case r.State == schedule.Done:
			out.LastFire, out.Status = "too_late", "too_late"
			out.Text = fmt.Sprintf("too late: %s %s fired %s and its delivery has begun or is over", r.ID, quoted(r.Message, r.Topic), due)
			return sdk.JSON(out)
		default:
			out.LastFire = "too_late"
			out.Text += "; what was due " + due + " was too late to withdraw"
		}
	}
	return sdk.JSON(out, s.write(r.Cancel(s.now()), r.version))
}

// withdraw takes back the newest fire unless somebody has begun to deliver it.
// It is a commit of its own, since its outcome is part of the answer; its id
// makes a repeated call get the same answer.
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
		return false, nil // delivered long ago, and pruned
	}
	if err != nil {
		return false, fmt.Errorf("withdraw what %s has fired: %w", sc.ID, err)
	}
	// Without an event there was nothing left to withdraw.
	return len(results) == 1 && results[0].GetEventId() != "" && !results[0].GetTooLate(), nil
}

// remove is the effect that deletes a row.
func (s *scheduler) remove(id string, version int64) sdk.Effect {
	s.expect(id, version)
	s.mu.Lock()
	delete(s.unreadable, id)
	s.mu.Unlock()
	return sdk.DeleteAt(rowKey(id), version)
}
