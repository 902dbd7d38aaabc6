package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/extensions/memory/search"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// similarShare is the share of common words from which a memory counts as
	// similar, and similarMost the most similar memories in a result.
	similarShare = 0.4
	similarMost  = 3
)

type rememberArgs struct {
	ID        string  `json:"id"`
	Text      string  `json:"text"`
	Kind      string  `json:"kind"`
	ChannelID *string `json:"channel_id"`
	Due       *string `json:"due"`
	Scope     string  `json:"scope"`
	Household bool    `json:"household"` // it becomes the household's
	// Attachments are references to files of the conversation; nil: those of the changed
	// memory stay.
	Attachments []string `json:"attachments"`
	files       []contract.Attachment
}

// remembered is the result of remember.
type remembered struct {
	Status string `json:"status"` // remembered, updated, known
	view
	Similar []view   `json:"similar,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	Summary string   `json:"summary"`
}

func (m *memory) remember(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a rememberArgs
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	scope, err := writable(c, a.Scope)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	notes, err := m.checkChannel(ctx, a.ChannelID)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	if a.files, err = m.files(ctx, c, a.Attachments); err != nil {
		return sdk.ToolResult{}, err
	}
	out := remembered{Notes: notes}
	var effects sdk.Effects
	err = m.use(ctx, c, "", func(all *rows, allowed reach) error {
		old, changing, err := m.target(all, c, a, scope, allowed)
		if err != nil {
			return err
		}
		fresh, err := m.apply(old.Item, a, scope, changing, c)
		if err != nil {
			return err
		}
		if other, taken := all.byText[keyOf(fresh)]; changing && taken && other != old.ID {
			return words.Errorf("memory %s already has this text: forget %s instead", other, old.ID)
		}
		switch {
		case !changing:
			out.Status = "remembered"
			fresh.ID = item.NewID(scope+fresh.Whose(), fresh.Text, all.free)
		case sameContent(old.Item, fresh) && old.Whose() == fresh.Whose():
			out.Status = "known"
		default:
			out.Status = "updated"
		}
		similar := all.find(fresh.Text, func(r row) bool { return allowed.use(r.Item) && r.ID != fresh.ID })
		for _, h := range similar[:min(len(similar), 10*similarMost)] {
			if len(out.Similar) < similarMost && search.Overlap(h.Text, fresh.Text) >= similarShare {
				out.Similar = append(out.Similar, m.view(h.Item, c))
			}
		}
		effects = m.store.write([]row{{fresh, old.version}}, nil)
		out.view = m.view(fresh, c)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	out.Summary = out.Status + ": " + out.line()
	return sdk.JSON(out, effects...)
}

// target returns the memory to change, by its id or its text. It reports false if
// there is none.
func (m *memory) target(
	all *rows, c sdk.ToolCall, a rememberArgs, scope string, allowed reach,
) (row, bool, error) {
	if a.ID != "" {
		old, err := all.get(a.ID, allowed)
		if err == nil && a.Scope != "" && a.Scope != old.Scope {
			err = words.Errorf("memory %s is in scope %s: to move it to %s, remember it there and forget this one",
				old.ID, old.Scope, a.Scope)
		}
		return old, true, err
	}
	old, found := all.same(c.Principal, scope, a.Text)
	return old, found, nil
}

// apply returns the memory after the call.
func (m *memory) apply(old item.Item, a rememberArgs, scope string, changing bool, c sdk.ToolCall) (item.Item, error) {
	fresh := old
	if !changing {
		fresh = item.Item{
			Scope: scope, Kind: item.Fact, By: shorten(c.Sender, 80), Principal: c.Principal, Created: m.timeOf(c),
		}
	}
	fresh.Updated = m.timeOf(c)
	if a.Text != "" || !changing {
		fresh.Text = item.Clean(a.Text)
	}
	if a.Attachments != nil {
		fresh.Attachments = a.files
	}
	if a.ChannelID != nil {
		fresh.ChannelID = strings.TrimSpace(*a.ChannelID)
	}
	if a.Due != nil {
		due, err := item.ParseDue(*a.Due, m.zoneOf(c))
		if err != nil {
			return fresh, err
		}
		if fresh.Due = due; !due.IsZero() && a.Kind == "" {
			fresh.Kind = item.Open
		}
	}
	if a.Kind != "" {
		if fresh.Kind = item.Kind(a.Kind); fresh.Kind != item.Open && a.Due == nil {
			fresh.Due = item.Due{}
		}
	}
	if changing && old.Group() != "" && old.Group() != c.Principal.Group && !sameContent(old, fresh) {
		fresh.Principal = c.Principal // the group did not hear it
	}
	if a.Household {
		if c.Principal.Confined {
			return fresh, words.Errorf("nothing can be stored for the household here")
		}
		fresh.Principal = c.Principal
		fresh.Principal.Own = false
	}
	return fresh, fresh.CheckContent()
}

func sameContent(a, b item.Item) bool {
	return a.Text == b.Text && a.Kind == b.Kind && a.ChannelID == b.ChannelID && a.Due.Equal(b.Due) &&
		slices.Equal(a.Attachments, b.Attachments)
}

// checkChannel refuses a channel that does not exist. The notes say if it is not
// set up.
func (m *memory) checkChannel(ctx context.Context, id *string) (notes []string, err error) {
	if id == nil || strings.TrimSpace(*id) == "" {
		return nil, nil
	}
	channels, err := m.k.Channels(ctx)
	if err != nil {
		return nil, fmt.Errorf("check channel %s: %w", *id, err)
	}
	var known []string
	for _, ch := range channels {
		if ch.GetId() == strings.TrimSpace(*id) {
			if state := ch.GetReadiness().GetState(); state == sdk.Unconfigured {
				return []string{words.Sprintf("channel %s is not set up: nothing can be sent there", ch.GetId())}, nil
			}
			return nil, nil
		}
		known = append(known, fmt.Sprintf("%s (%s)", ch.GetId(), ch.GetName()))
	}
	if len(known) == 0 {
		return nil, words.Errorf("there is no channel %q: no channel is set up", *id)
	}
	return nil, words.Errorf("there is no channel %q: use one of %s", *id, strings.Join(known, ", "))
}
