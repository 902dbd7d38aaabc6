package scheduler

import (
	"context"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/scheduler/schedule"
	"github.com/switchboard-run/switchboard/sdk"
)

func (s *scheduler) update(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var args struct {
		ID     string `json:"id"`
		Action string `json:"action"`
		schedule.Request
	}
	if err := c.Decode(&args); err != nil {
		return sdk.ToolResult{}, err
	}
	r, err := s.find(ctx, c, args.ID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if args.Redefines() && runsForAnother(r.Schedule, args.Topic, c.Principal) {
		return sdk.ToolResult{}, fmt.Errorf(
			"edit schedule %s: only the person who set it can change what the assistant does, or says for them", r.ID)
	}
	sc, status, notes := r.Schedule, "", []string(nil)
	edits := args.Edits()
	if (edits || args.Action == "undo") && r.Owner != "" {
		return sdk.ToolResult{}, fmt.Errorf(
			"edit schedule %s: the manifest of %s declares it: it can only be paused and resumed", r.ID, r.Owner)
	}
	if edits {
		if sc, notes, err = sc.Edit(args.Request, s.env(c)); err != nil {
			return sdk.ToolResult{}, err
		}
		if err := s.readdress(ctx, c, &sc, args.Request); err != nil {
			return sdk.ToolResult{}, err
		}
		if args.ChannelID != nil || args.Person != nil || args.Topic != nil {
			warnings, err := s.checkDestination(ctx, sc)
			if err != nil {
				return sdk.ToolResult{}, err
			}
			notes = append(notes, warnings...)
		}
		notes = append(notes, zoneNote(args.Request, sc)...)
		status = "changed"
	}
	switch args.Action {
	case "undo":
		if edits {
			return sdk.ToolResult{}, fmt.Errorf("undo the change of schedule %s: give no fields to change", r.ID)
		}
		if sc, err = r.Undo(s.now()); err != nil {
			return sdk.ToolResult{}, err
		}
		return s.changed("restored", sc, c, nil, s.write(sc, r.version))
	case "pause":
		sc, err = sc.Pause()
		status = "paused"
	case "resume":
		sc, err = sc.Resume(s.now())
		status = "resumed"
	case "", "edit":
		if !edits {
			return sdk.ToolResult{}, fmt.Errorf(
				"update schedule %s: nothing to change: give action pause or resume, or the fields to change", r.ID)
		}
	default:
		return sdk.ToolResult{}, fmt.Errorf("update schedule %s: unknown action %q: use pause, resume, edit or undo",
			r.ID, args.Action)
	}
	if err != nil {
		return sdk.ToolResult{}, err
	}
	sc = sc.ChangedFrom(r.Schedule)
	return s.changed(status, sc, c, notes, s.write(sc, r.version))
}

// runsForAnother reports whether a schedule of the household, or what an edit makes of it,
// is a job that may use the own things of a person other than the caller's, or speaks in
// the name of one.
func runsForAnother(sc schedule.Schedule, topic *string, p contract.Principal) bool {
	isJob := func(topic string) bool { return topic == schedule.TopicTask || topic == schedule.TopicBackground }
	by := sc.Principal
	if by.Person == "" || p.Sees(contract.Principal{Person: by.Person, Own: true}) {
		return false
	}
	return sc.To != nil && by.Person != p.Person || by.Group == "" && (isJob(sc.Topic) || topic != nil && isJob(*topic))
}
