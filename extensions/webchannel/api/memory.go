package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Memory is a fact, a preference or an open item.
type Memory struct {
	ID          string     `json:"id"`
	Kind        string     `json:"kind" enum:"fact,preference,open"`
	Text        string     `json:"text"`
	Scope       string     `json:"scope,omitempty" doc:"Absent: personal."`
	ChannelID   string     `json:"channel_id,omitempty"`
	Due         string     `json:"due,omitempty" doc:"Of an open item: a day or a time."`
	DueLocal    string     `json:"due_local,omitempty"`
	IsDue       bool       `json:"is_due,omitempty"`
	Overdue     bool       `json:"overdue,omitempty"`
	By          string     `json:"by,omitempty" doc:"Who told it."`
	Attachments []string   `json:"attachments,omitempty"`
	InGroup     bool       `json:"said_in_group,omitempty"`
	Created     time.Time  `json:"created"`
	Updated     *time.Time `json:"updated,omitempty"`
}

// Remembered is a memory after a change.
type Remembered struct {
	Memory
	Status  string   `json:"status" enum:"remembered,updated,known"`
	Similar []Memory `json:"similar,omitempty" doc:"That may be outdated now."`
	Notes   []string `json:"notes,omitempty"`
}

// NewMemory is what to remember.
type NewMemory struct {
	Text      string `json:"text" minLength:"1"`
	Kind      string `json:"kind,omitempty" enum:"fact,preference,open"`
	Scope     string `json:"scope,omitempty"`
	ChannelID string `json:"channel_id,omitempty"`
	Due       string `json:"due,omitempty" doc:"2026-03-01 or 2026-03-01T18:30"`
	Household bool   `json:"household,omitempty" doc:"It is everyone's, not only yours."`
}

// MemoryChange has the fields to change; the others stay.
type MemoryChange struct {
	Text      string  `json:"text,omitempty"`
	Kind      string  `json:"kind,omitempty" enum:"fact,preference,open"`
	ChannelID *string `json:"channel_id,omitempty" doc:"Empty: of no channel."`
	Due       *string `json:"due,omitempty" doc:"Empty: no longer due."`
	Household bool    `json:"household,omitempty"`
}

type memoryQuery struct {
	Paging
	Query string `query:"query" maxLength:"2000" doc:"Search for these words, the best match first."`
	Kind  string `query:"kind" enum:"fact,preference,open"`
	Scope string `query:"scope" maxLength:"300"`
}

type (
	rememberedResponse struct{ Body Remembered }
	memoryResponse     struct{ Body Memory }
	memoryCreation     struct{ Body NewMemory }
	memoryUpdate       struct {
		ByID
		Body MemoryChange
	}
)

// The tools of the memory extension.
const (
	listMemories   = "memory/list_memories"
	recallMemories = "memory/recall"
	remember       = "memory/remember"
	forgetMemories = "memory/forget"
)

func (a *api) memory(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/memory", id: "list-memories", tag: "memory", scope: door.ScopeMemory,
		summary: "List memories, or search them",
	}, a.listMemories)
	add(h, op{
		method: http.MethodGet, path: "/memory/{id}", id: "get-memory", tag: "memory", scope: door.ScopeMemory,
		summary: "Show a memory",
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*memoryResponse, error) {
		m, err := a.findMemory(ctx, v, in.ID)
		return &memoryResponse{m}, err
	})
	add(h, op{
		method: http.MethodPost, path: "/memory", id: "remember", tag: "memory", scope: door.ScopeMemory,
		summary: "Remember something", status: http.StatusCreated,
		about: "What is known already stays one memory.",
	}, func(ctx context.Context, v door.Visitor, in *memoryCreation) (*rememberedResponse, error) {
		made, err := callTool[Remembered](ctx, a, v, remember, in.Body)
		return &rememberedResponse{made}, err
	})
	add(h, op{
		method: http.MethodPatch, path: "/memory/{id}", id: "change-memory", tag: "memory", scope: door.ScopeMemory,
		summary: "Change the given fields of a memory",
	}, func(ctx context.Context, v door.Visitor, in *memoryUpdate) (*rememberedResponse, error) {
		if _, err := a.findMemory(ctx, v, in.ID); err != nil {
			return nil, err
		}
		changed, err := callTool[Remembered](ctx, a, v, remember, struct {
			ID string `json:"id"`
			MemoryChange
		}{in.ID, in.Body})
		return &rememberedResponse{changed}, err
	})
	add(h, op{
		method: http.MethodDelete, path: "/memory/{id}", id: "forget", tag: "memory", scope: door.ScopeMemory,
		summary: "Forget a memory for good", status: http.StatusNoContent,
	}, func(ctx context.Context, v door.Visitor, in *ByID) (*struct{}, error) {
		m, err := a.findMemory(ctx, v, in.ID)
		if err == nil {
			_, err = callTool[json.RawMessage](ctx, a, v, forgetMemories, map[string][]string{"ids": {m.ID}})
		}
		return &struct{}{}, err
	})
}

// memories is the result of list_memories and recall.
type memories struct {
	Memories []Memory `json:"memories"`
	More     int      `json:"more"`
}

// maxRecall is the most that recall returns.
const maxRecall = 1000

func (a *api) listMemories(ctx context.Context, v door.Visitor, in *memoryQuery) (*listing[Memory], error) {
	var from int
	if err := in.at(&from); err != nil {
		return nil, err
	}
	from = max(from, 0)
	name, fields := listMemories, map[string]any{"limit": in.Limit, "offset": from}
	if in.Query != "" {
		name, fields = recallMemories, map[string]any{"query": in.Query, "limit": min(from+in.Limit, maxRecall)}
	}
	if in.Kind != "" {
		fields["kind"] = in.Kind
	}
	if in.Scope != "" {
		fields["scope"] = in.Scope
	}
	found, err := callTool[memories](ctx, a, v, name, fields)
	if err != nil {
		return nil, err
	}
	all := found.Memories
	if in.Query != "" {
		all = all[min(from, len(all)):]
	}
	page := &listing[Memory]{Page[Memory]{Items: append([]Memory{}, all...)}}
	if found.More > 0 && (in.Query == "" || from+in.Limit < maxRecall) {
		page.Body.Next = cursor(from + len(all))
	}
	return page, nil
}

// findMemory returns a memory that the visitor may see.
func (a *api) findMemory(ctx context.Context, v door.Visitor, id string) (Memory, error) {
	for from := 0; ; {
		found, err := callTool[memories](ctx, a, v, listMemories, map[string]any{"limit": maxRecall, "offset": from})
		if err != nil {
			return Memory{}, err
		}
		for _, m := range found.Memories {
			if m.ID == id {
				return m, nil
			}
		}
		if from += len(found.Memories); found.More == 0 || len(found.Memories) == 0 {
			return Memory{}, missing("memory", id)
		}
	}
}
