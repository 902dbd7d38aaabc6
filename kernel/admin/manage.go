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
	"github.com/switchboard-run/switchboard/kernel/people"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/tools"
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

// commit makes a change.
func commit[T any](s *Service, change func(*bus.Tx) (T, error)) (made T, err error) {
	err = s.Bus.Do(func(tx *bus.Tx) (err error) {
		made, err = change(tx)
		return err
	})
	return made, err
}

// changed makes a change, and returns the row of what was changed.
func changed[T, R any](s *Service, row func(*T) *R, change func(*bus.Tx) (*T, error)) (*R, error) {
	made, err := commit(s, change)
	if err != nil {
		return nil, err
	}
	return row(made), nil
}

// Approve implements adminv1.ManageServer.
func (s *Service) Approve(_ context.Context, q *adminv1.ApproveRequest) (*adminv1.Account, error) {
	return changed(s, account, func(tx *bus.Tx) (*people.Account, error) {
		return s.Router.Approve(tx, q.GetCode(), q.GetRole())
	})
}

// Admit implements adminv1.ManageServer.
func (s *Service) Admit(_ context.Context, q *adminv1.AdmitRequest) (*adminv1.Account, error) {
	a := people.Account{
		Channel: q.GetChannel(), UserID: q.GetUserId(), Name: q.GetName(), Conversation: q.GetConversation(),
	}
	return changed(s, account, func(tx *bus.Tx) (*people.Account, error) { return s.Router.Admit(tx, a, q.GetPerson()) })
}

// Revoke implements adminv1.ManageServer.
func (s *Service) Revoke(_ context.Context, q *adminv1.RevokeRequest) (*adminv1.RevokeResponse, error) {
	return commit(s, func(tx *bus.Tx) (*adminv1.RevokeResponse, error) {
		return s.Router.Revoke(tx, q.GetChannel(), q.GetUserId())
	})
}

// SetRole implements adminv1.ManageServer.
func (s *Service) SetRole(_ context.Context, q *adminv1.SetRoleRequest) (*adminv1.Person, error) {
	return changed(s, withoutAccounts, func(tx *bus.Tx) (*people.Person, error) {
		return s.Router.SetRole(tx, q.GetPerson(), q.GetRole())
	})
}

// Unlink implements adminv1.ManageServer.
func (s *Service) Unlink(_ context.Context, q *adminv1.UnlinkRequest) (*adminv1.Person, error) {
	return changed(s, withoutAccounts, func(tx *bus.Tx) (*people.Person, error) {
		return s.Router.Unlink(tx, q.GetAccount())
	})
}

// RemovePerson implements adminv1.ManageServer.
func (s *Service) RemovePerson(_ context.Context, q *adminv1.RemovePersonRequest) (*adminv1.RevokeResponse, error) {
	return commit(s, func(tx *bus.Tx) (*adminv1.RevokeResponse, error) {
		return s.Router.RemovePerson(tx, q.GetPerson())
	})
}

// ClearPairings implements adminv1.ManageServer.
func (s *Service) ClearPairings(
	_ context.Context, q *adminv1.ClearPairingsRequest,
) (*adminv1.ClearPairingsResponse, error) {
	n, err := commit(s, func(tx *bus.Tx) (int, error) { return router.ClearPairings(tx, q.GetChannel()) })
	return &adminv1.ClearPairingsResponse{Cleared: int32(n)}, err
}

// SetHousehold implements adminv1.ManageServer.
func (s *Service) SetHousehold(_ context.Context, q *adminv1.SetHouseholdRequest) (*adminv1.Group, error) {
	return changed(s, group, func(tx *bus.Tx) (*session.Group, error) {
		return s.Router.SetHousehold(tx, q.GetGroup(), q.GetHousehold())
	})
}

// RevokeApprovals implements adminv1.ManageServer.
func (s *Service) RevokeApprovals(
	_ context.Context, q *adminv1.RevokeApprovalsRequest,
) (*adminv1.RevokeApprovalsResponse, error) {
	if q.GetAgent() == "" && q.GetTool() == "" {
		return nil, fmt.Errorf("%w: name a tool or an agent", contract.ErrInvalid)
	}
	n, err := commit(s, func(tx *bus.Tx) (int, error) { return tools.RevokeApprovals(tx, q.GetAgent(), q.GetTool()) })
	return &adminv1.RevokeApprovalsResponse{Revoked: int32(n)}, err
}

// Resubmit implements adminv1.ManageServer.
func (s *Service) Resubmit(_ context.Context, q *adminv1.ResubmitRequest) (*adminv1.ResubmitResponse, error) {
	n, err := s.Bus.Resubmit(q.GetEvent())
	return &adminv1.ResubmitResponse{Deliveries: int32(n)}, err
}

// DeleteSession implements adminv1.ManageServer.
func (s *Service) DeleteSession(
	_ context.Context, q *adminv1.DeleteSessionRequest,
) (*adminv1.DeleteSessionResponse, error) {
	return &adminv1.DeleteSessionResponse{}, s.Bus.Do(func(tx *bus.Tx) error { return s.Store.Delete(tx, q.GetId()) })
}

// CallTool implements adminv1.ManageServer.
func (s *Service) CallTool(ctx context.Context, q *adminv1.CallToolRequest) (*adminv1.ToolResult, error) {
	if !json.Valid(q.GetArguments()) {
		return nil, fmt.Errorf("%w: the arguments of %s are not JSON", contract.ErrInvalid, q.GetName())
	}
	var of contract.Principal
	if q.GetPerson() != "" {
		if err := s.Bus.View(ctx, func(r journal.Reader) error {
			p, err := people.Known(r, q.GetPerson())
			if err == nil {
				of = p.Principal("")
				of.Confined = of.Confined || !q.GetHousehold()
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	result, err := s.Tools.CallOutsideTurn(ctx, q.GetName(), q.GetArguments(), of)
	return &adminv1.ToolResult{Content: result.GetContent(), IsError: result.GetIsError()}, err
}
