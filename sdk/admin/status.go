package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
)

// Status is the status of a kernel with its extensions and with counts. Nothing of a
// damaged store is counted.
type Status struct {
	*adminv1.Status
	Extensions  []*adminv1.Extension
	LastEvent   string // id; empty: there is none
	DeadLetters int    // counted up to 1000
	Strangers   int    // pairing codes that wait for approval
	People      []*adminv1.Person
}

const maxCounted = 1000

// ReadStatus reads the status. Waiting is sorted by extension and topic.
func ReadStatus(ctx context.Context, c adminv1.ReadClient) (s Status, err error) {
	if s.Status, err = c.Status(ctx, &adminv1.StatusRequest{}); err != nil {
		return s, err
	}
	slices.SortFunc(s.Waiting, func(a, b *adminv1.Subscription) int {
		return cmp.Or(cmp.Compare(a.GetExtension(), b.GetExtension()), cmp.Compare(a.GetTopic(), b.GetTopic()))
	})
	if s.Extensions, err = Extensions(ctx, c); err != nil || s.Damage != "" {
		return s, err
	}
	NoteBusy(s.Extensions, s.Waiting, time.Now())
	last, err := LastSeq(ctx, c)
	if err != nil {
		return s, err
	}
	if last > 0 {
		s.LastEvent = fmt.Sprintf("e%d", last)
	}
	dead, err := Deliveries(ctx, c, &adminv1.DeliveriesRequest{Dead: true, Limit: maxCounted})
	if err != nil {
		return s, err
	}
	people, err := c.People(ctx, &adminv1.PeopleRequest{})
	s.DeadLetters, s.Strangers, s.People = len(dead), len(people.GetWaiting()), people.GetPeople()
	return s, err
}

// busyAfter is how long a handler may take before its extension is shown as busy.
const busyAfter = 10 * time.Second

// NoteBusy notes in the rows of extensions that are active and ready which of them have
// been handling one delivery for a while: they may hang. It also notes those that have not
// given any credit for a while, so that their deliveries wait.
func NoteBusy(rows []*adminv1.Extension, waiting []*adminv1.Subscription, now time.Time) {
	for _, x := range rows {
		if x.GetState() != "active" || x.GetReadiness() != "" && x.GetReadiness() != "ready" {
			continue
		}
		var longest time.Duration
		mute := int32(0)
		for _, w := range waiting {
			if w.GetExtension() != x.GetId() {
				continue
			}
			if w.GetHandlingSinceUs() > 0 {
				longest = max(longest, now.Sub(time.UnixMicro(w.GetHandlingSinceUs())))
			}
			if w.GetNoCredit() && now.Sub(time.UnixMicro(x.GetSinceUs())) >= busyAfter {
				mute += w.GetDeliveries()
			}
		}
		switch {
		case longest >= busyAfter:
			x.Readiness = "busy"
			x.Detail = joined(x.GetDetail(), words.Sprintf("has been handling one delivery for %s",
				longest.Truncate(time.Second)))
		case mute > 0:
			x.Readiness = "degraded"
			x.Detail = joined(x.GetDetail(), words.Sprintf("takes no deliveries (%d waiting): it has given no credit since "+
				"it started, see `switchboard extensions verify`", mute))
		}
	}
}

// joined is a detail with more after it.
func joined(detail, more string) string {
	if detail == "" {
		return more
	}
	return detail + "; " + more
}

// JSON returns the status as JSON.
func (s Status) JSON() *Object {
	extensions := make([]*Object, len(s.Extensions))
	for i, x := range s.Extensions {
		extensions[i] = JSON(x)
	}
	o := JSON(s.Status).With("extensions", extensions)
	o.With("dead_letters", s.DeadLetters).With("strangers", s.Strangers)
	if s.LastEvent != "" {
		o.With("last_event", s.LastEvent)
	}
	return o
}

// Extensions returns all extensions, running or not.
func Extensions(ctx context.Context, c adminv1.ReadClient) ([]*adminv1.Extension, error) {
	all, err := c.Extensions(ctx, &adminv1.ExtensionsRequest{})
	return all.GetExtensions(), err
}

// Times of a change of an extension.
const (
	settleTime = 15 * time.Second // for a restart
	settleLook = 20 * time.Millisecond
)

// Settled reports whether an extension is not on its way to another state.
func Settled(x *adminv1.Extension) bool {
	return !slices.Contains([]string{"inactive", "starting", "stopping"}, x.GetState())
}

// Await waits until the row of an extension, nil if there is none, is wanted, and returns the
// last one that it has seen. It ends with the context, too; then ok is false.
func Await(
	ctx context.Context, c adminv1.ReadClient, id string, wanted func(*adminv1.Extension) bool,
) (last *adminv1.Extension, ok bool) {
	for {
		all, err := Extensions(ctx, c)
		if i := slices.IndexFunc(all, func(x *adminv1.Extension) bool { return x.GetId() == id }); i >= 0 {
			last = all[i]
		} else if err == nil {
			last = nil
		}
		if err == nil && wanted(last) {
			return last, true
		}
		select {
		case <-ctx.Done():
			return last, false
		case <-time.After(settleLook):
		}
	}
}

// Restart restarts the process of an extension and waits up to 15 seconds for the
// extension to settle. It returns all extensions of that process.
func Restart(ctx context.Context, c *Client, id string) (x *adminv1.Extension, restarted []string, err error) {
	find := func() error {
		all, err := Extensions(ctx, c)
		if i := slices.IndexFunc(all, func(x *adminv1.Extension) bool { return x.GetId() == id }); i >= 0 {
			x = all[i]
		}
		return err
	}
	done, err := c.Restart(ctx, &adminv1.RestartRequest{Id: id})
	restarted = done.GetRestarted()
	switch findErr := find(); {
	case findErr != nil:
		return nil, nil, cmp.Or(err, findErr)
	case x == nil:
		return nil, nil, fmt.Errorf("%w: there is no extension %q", contract.ErrNotFound, id)
	case errors.Is(err, contract.ErrNotFound):
		return nil, nil, fmt.Errorf("%w: %s is %s and cannot be started: %s",
			contract.ErrInvalid, id, x.GetState(), x.GetDetail())
	case err != nil:
		return nil, nil, err
	}
	for end := time.Now().Add(settleTime); x.GetState() == "starting" || x.GetState() == "stopping"; {
		if time.Now().After(end) {
			break
		}
		select {
		case <-time.After(settleLook):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		if err := find(); err != nil {
			return nil, nil, err
		}
	}
	return x, restarted, nil
}

// Channel is a channel as it is listed.
type Channel struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Status    string   `json:"status"` // ready, unconfigured, degraded, offline, or the state of its process
	Detail    string   `json:"detail,omitempty"`
	Default   bool     `json:"default"`
	MaxLength int32    `json:"max_length"` // of a text; 0: no limit
	AllowFrom []string `json:"allow_from"` // people admitted by the configuration
	Agent     string   `json:"agent,omitempty"`
}

// Channels lists the channels of a directory.
func Channels(dir *adminv1.DirectoryResponse) []Channel {
	all := []Channel{}
	for _, c := range dir.GetChannels() {
		x := Channel{
			ID: c.GetId(), Name: c.GetName(), Status: c.GetState(), Detail: c.GetReadiness().GetDetail(),
			Default: c.GetId() == dir.GetDefaultChannel(), MaxLength: c.GetMaxLength(),
			AllowFrom: append([]string{}, c.GetAllowFrom()...),
			Agent:     cmp.Or(dir.GetRouting()[c.GetId()], dir.GetDefaultAgent()),
		}
		if is := c.GetReadiness().GetState(); x.Status == "active" {
			x.Status = "offline"
			if is != extensionv1.Readiness_STATE_UNSPECIFIED {
				x.Status = strings.ToLower(strings.TrimPrefix(is.String(), "STATE_"))
			}
		}
		all = append(all, x)
	}
	return all
}

// Agent is an agent as it is listed.
type Agent struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	State       string   `json:"state"`
	Enabled     bool     `json:"enabled"`
	Default     bool     `json:"default"`
	Model       string   `json:"model,omitempty"`
	Tools       []string `json:"tools"`   // that it may call
	Memory      []string `json:"memory"`  // scopes that it may read and write
	History     string   `json:"history"` // session, or none: each input is answered by itself
}

// Agents lists the agents of a directory.
func Agents(dir *adminv1.DirectoryResponse) []Agent {
	all := []Agent{}
	for _, a := range dir.GetAgents() {
		x := Agent{
			ID: a.GetId(), Name: a.GetName(), Description: a.GetDescription(), State: a.GetState(),
			Enabled: a.GetEnabled(), Default: a.GetId() == dir.GetDefaultAgent(), Tools: append([]string{}, a.GetTools()...),
			Memory: append([]string{}, a.GetSpec().GetMemory()...), History: "session",
		}
		if a.GetSpec().GetNoHistory() {
			x.History = "none"
		}
		if !a.GetSpec().GetEcho() {
			x.Model = a.GetSpec().GetModel()
		}
		all = append(all, x)
	}
	return all
}
