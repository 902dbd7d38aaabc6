package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// CallOutsideTurn runs a tool of an extension for a person at the command line. Its
// effects are one commit of that extension. No row makes a repeat safe, so only a
// version conflict is retried. It waits for an extension that starts for the first
// time.
func (r *Runner) CallOutsideTurn(
	ctx context.Context, name string, raw json.RawMessage,
) (*extensionv1.CallResult, error) {
	extension, _, _ := strings.Cut(name, "/")
	dir := r.awaitDirectory(ctx, func(dir *directory.Snapshot) bool { return !slices.Contains(dir.Starting, extension) })
	t := dir.Tool(name)
	if t == nil || t.Extension == CoreExtension {
		return nil, fmt.Errorf("%w: no tool %s: its extension %s is not running; `switchboard extensions list` says why",
			contract.ErrNotFound, name, extension)
	}
	if bad := checkArguments(t, raw); bad != "" {
		return nil, fmt.Errorf("%w: %s", contract.ErrInvalid, bad)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for conflicts := 0; ; conflicts++ {
		result, err := r.callOutsideTurn(ctx, t.Extension, &extensionv1.CallRequest{
			Name: t.Tool.GetName(), Arguments: arguments(raw), Timezone: dir.Location.String(), Repeat: conflicts > 0,
		})
		if !errors.Is(err, contract.ErrConflict) || conflicts >= maxConflicts {
			return result, err
		}
	}
}

func (r *Runner) callOutsideTurn(
	ctx context.Context, extension string, request *extensionv1.CallRequest,
) (*extensionv1.CallResult, error) {
	actor := r.Remote.Actor(extension)
	if actor == nil {
		return nil, fmt.Errorf("%w: the extension %s is not running", contract.ErrUnavailable, extension)
	}
	lease := r.Bus.LeaseAlone(actor)
	defer r.Bus.Release(lease)
	request.Lane = lease.Token
	result, err := r.Remote.CallTool(ctx, extension, request)
	if err != nil || len(result.GetEffects()) == 0 {
		return result, err
	}
	return result, r.Bus.DoAs(actor, lease, func(tx *bus.Tx) error {
		_, err := tx.Apply(result.GetEffects())
		return err
	})
}

// Delivered is the outcome of a send outside of a turn.
type Delivered struct {
	Status, Detail string // delivered, queued, failed
	Events         []string
	ProviderIDs    []string
}

// Send sends a text to the default recipient of a channel, and waits for the
// receipt of the platform if the channel is ready.
func (r *Runner) Send(ctx context.Context, channel, text string) (*Delivered, error) {
	dir := r.Directory.Current()
	if why := unreachable(dir, channel); why != "" {
		kind := contract.ErrUnavailable
		if dir.Channel(channel) == nil {
			kind, why = contract.ErrNotFound, strings.ToLower(why[:1])+why[1:]
		}
		return nil, fmt.Errorf("%w: %s Nothing was sent", kind, why)
	}
	c := dir.Channel(channel)
	d := &Delivered{Status: "queued"}
	receipts := newReceipts(r.Bus)
	defer receipts.close()
	err := r.Bus.Do(func(tx *bus.Tx) error {
		d.Events = nil
		seqs, err := r.Router.SendTo(tx, channel, text, "", "", "")
		for _, seq := range seqs {
			d.Events = append(d.Events, journal.EventID(seq))
		}
		if c.Ready() {
			receipts.await(tx, 0, seqs)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, receiptWait)
	defer cancel()
	receipts.each(waiting, func(_ int, part journal.Delivery, last bool) {
		if part.ProviderID != "" {
			d.ProviderIDs = append(d.ProviderIDs, part.ProviderID)
		}
		switch {
		case part.State == journal.Dead:
			d.Status, d.Detail = "failed", part.Reason
		case last && d.Status == "queued":
			d.Status = "delivered"
		}
	})
	switch {
	case d.Status == "queued" && !c.Ready():
		d.Detail = notReady(c)
	case d.Status == "queued":
		d.Detail = fmt.Sprintf("no receipt from %s yet; delivery is retried until it succeeds", c.Name)
	}
	return d, nil
}
