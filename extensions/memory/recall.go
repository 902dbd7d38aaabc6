package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/memory/item"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	defaultRecall = 10
	defaultList   = 50
)

// listing is the result of recall, list_memories and open_items.
type listing struct {
	Memories   []view       `json:"memories"`
	More       int          `json:"more,omitempty"` // beyond the limit
	Unreadable []unreadable `json:"unreadable,omitempty"`
	Filtered   bool         `json:"filtered,omitempty"` // not all were asked for
	Text       string       `json:"text,omitempty"`     // for people
}

type unreadable struct {
	ID    string `json:"id"`
	Error string `json:"error"`
}

func (m *memory) recall(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Query string `json:"query"`
		Kind  string `json:"kind"`
		Scope string `json:"scope"`
		Limit int    `json:"limit"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	if a.Limit <= 0 {
		a.Limit = defaultRecall
	}
	out := listing{Memories: []view{}}
	var files []row
	err := m.use(ctx, c, a.Scope, func(all *rows, allowed reach) error {
		found := all.find(a.Query, func(r row) bool {
			return allowed.use(r.Item) &&
				(a.Kind == "" || string(r.Kind) == a.Kind)
		})
		for _, h := range found[:min(len(found), a.Limit)] {
			out.Memories = append(out.Memories, m.view(h.Item, c))
			files = append(files, h.row)
		}
		out.More = len(found) - len(out.Memories)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return withFiles(c, out, files)
}

func (m *memory) openItems(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	var a struct {
		Scope    string    `json:"scope"`
		Kind     item.Kind `json:"kind"`
		Accounts []string  `json:"accounts"`
		Own      bool      `json:"own"`
	}
	if err := c.Decode(&a); err != nil {
		return sdk.ToolResult{}, err
	}
	of := contract.Principal{Own: true, Accounts: a.Accounts}
	theirs := func(i item.Item) bool {
		return len(a.Accounts) == 0 || of.Sees(i.Principal) && (i.Principal.Own || !a.Own)
	}
	out := listing{}
	err := m.use(ctx, c, a.Scope, func(all *rows, allowed reach) error {
		open := all.filter(func(r row) bool {
			return r.Kind == cmp.Or(a.Kind, item.Open) && allowed.use(r.Item) && theirs(r.Item)
		})
		slices.SortFunc(open, dueFirst)
		out.Memories = m.views(open, c)
		return nil
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return sdk.JSON(out)
}
