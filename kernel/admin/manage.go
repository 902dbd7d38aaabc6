package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/router"
)

const settleTime = 15 * time.Second // for extensions that restart

// Restart implements adminv1.ManageServer.
func (s *Service) Restart(ctx context.Context, q *adminv1.RestartRequest) (*adminv1.RestartResponse, error) {
	restarted, err := s.Supervisor.Restart(q.GetId())
	if err != nil {
		return nil, err
	}
	wait, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	_ = s.Supervisor.Wait(wait) // in vain or not: the row of the extension has its state
	return &adminv1.RestartResponse{Restarted: restarted}, nil
}

// Send implements adminv1.ManageServer.
func (s *Service) Send(ctx context.Context, q *adminv1.SendRequest) (*adminv1.Sent, error) {
	switch {
	case strings.TrimSpace(q.GetText()) == "":
		return nil, fmt.Errorf("%w: there is no text to send", contract.ErrInvalid)
	case len(q.GetText()) > contract.MaxPayload/2:
		return nil, fmt.Errorf("%w: the text has %d bytes, the limit is %d",
			contract.ErrTooLarge, len(q.GetText()), contract.MaxPayload/2)
	}
	d, err := s.Tools.Send(ctx, q.GetChannel(), q.GetText())
	if err != nil {
		return nil, err
	}
	return &adminv1.Sent{
		Status: d.Status, ChannelId: q.GetChannel(), Detail: valid(d.Detail), Events: d.Events,
		ProviderIds: d.ProviderIDs,
	}, nil
}

// Approve implements adminv1.ManageServer.
func (s *Service) Approve(_ context.Context, q *adminv1.ApproveRequest) (approved *adminv1.Person, err error) {
	return approved, s.Bus.Do(func(tx *bus.Tx) error {
		p, err := s.Router.Approve(tx, q.GetCode())
		if err == nil {
			approved = person(*p)
		}
		return err
	})
}

// Revoke implements adminv1.ManageServer.
func (s *Service) Revoke(_ context.Context, q *adminv1.RevokeRequest) (*adminv1.RevokeResponse, error) {
	out := &adminv1.RevokeResponse{}
	return out, s.Bus.Do(func(tx *bus.Tx) error {
		ended, err := s.Router.Revoke(tx, q.GetChannel(), q.GetUserId())
		if err == nil {
			out.Turns, out.Jobs, out.Questions = int32(ended.Turns), int32(ended.Jobs), int32(ended.Questions)
			out.Sends, out.Event = int32(ended.Sends), ended.Event
		}
		return err
	})
}

// ClearPairings implements adminv1.ManageServer.
func (s *Service) ClearPairings(
	_ context.Context, q *adminv1.ClearPairingsRequest,
) (*adminv1.ClearPairingsResponse, error) {
	out := &adminv1.ClearPairingsResponse{}
	return out, s.Bus.Do(func(tx *bus.Tx) error {
		n, err := router.ClearPairings(tx, q.GetChannel())
		out.Cleared = int32(n)
		return err
	})
}

// SetHousehold implements adminv1.ManageServer.
func (s *Service) SetHousehold(_ context.Context, q *adminv1.SetHouseholdRequest) (changed *adminv1.Group, err error) {
	return changed, s.Bus.Do(func(tx *bus.Tx) error {
		g, err := s.Router.SetHousehold(tx, q.GetGroup(), q.GetHousehold())
		if err == nil {
			changed = group(*g)
		}
		return err
	})
}

// Resubmit implements adminv1.ManageServer.
func (s *Service) Resubmit(_ context.Context, q *adminv1.ResubmitRequest) (*adminv1.ResubmitResponse, error) {
	seq, again := journal.ParseEventID(q.GetEvent()), 0
	err := s.Bus.Do(func(tx *bus.Tx) error {
		e, err := tx.Event(seq)
		if err == nil && e == nil {
			err = fmt.Errorf("%w: there is no event %q", contract.ErrNotFound, q.GetEvent())
		}
		if err == nil {
			again, err = s.Router.Again(tx, e)
		}
		return err
	})
	if err == nil && again == 0 {
		again, err = s.Bus.Resubmit(seq)
	}
	return &adminv1.ResubmitResponse{Deliveries: int32(again)}, err
}

// DeleteSession implements adminv1.ManageServer.
func (s *Service) DeleteSession(
	_ context.Context, q *adminv1.DeleteSessionRequest,
) (*adminv1.DeleteSessionResponse, error) {
	return &adminv1.DeleteSessionResponse{}, s.Bus.Do(func(tx *bus.Tx) error {
		one, err := tx.Session(journal.ParseSessionID(q.GetId()))
		if err == nil && one == nil {
			err = fmt.Errorf("%w: there is no session %q", contract.ErrNotFound, q.GetId())
		}
		if err == nil {
			err = s.Store.Delete(tx, one.ID)
		}
		return err
	})
}

// CallTool implements adminv1.ManageServer.
func (s *Service) CallTool(ctx context.Context, q *adminv1.CallToolRequest) (*adminv1.ToolResult, error) {
	if !json.Valid(q.GetArguments()) {
		return nil, fmt.Errorf("%w: the arguments of %s are not JSON", contract.ErrInvalid, q.GetName())
	}
	result, err := s.Tools.CallOutsideTurn(ctx, q.GetName(), q.GetArguments())
	return &adminv1.ToolResult{Content: result.GetContent(), IsError: result.GetIsError()}, err
}

// Backup implements adminv1.ManageServer.
func (s *Service) Backup(ctx context.Context, q *adminv1.BackupRequest) (*adminv1.BackupResponse, error) {
	info, err := s.Installation.Backup(ctx, q.GetFile(), q.GetSecrets())
	return &adminv1.BackupResponse{Info: info}, err
}
