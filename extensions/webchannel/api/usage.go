package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Usage is what models took together.
type Usage struct {
	Name      string           `json:"name" doc:"The day, agent, model, person or session."`
	Calls     int64            `json:"calls"`
	Input     int64            `json:"input_tokens"`
	Output    int64            `json:"output_tokens"`
	Cached    int64            `json:"cached_tokens" doc:"Of the input: what the providers had in their caches."`
	Estimated int64            `json:"estimated_calls" doc:"Of the calls: the provider reported no tokens."`
	Costs     map[string]int64 `json:"cost_micros" doc:"Money by currency, in millionths."`
}

type usageQuery struct {
	Paging
	By   string `query:"by" enum:"day,agent,model,person,session" default:"day"`
	Days int    `query:"days" minimum:"1" maximum:"3660" default:"7" doc:"The last ones, today included."`
}

func (a *api) usage(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/usage", id: "list-usage", tag: "usage", scope: door.ScopeUsage,
		summary: "Add up tokens and money",
	}, func(ctx context.Context, _ door.Visitor, in *usageQuery) (*listing[Usage], error) {
		sums, err := admin.ReadUsage(ctx, a.Read, in.By, in.Days)
		if err != nil {
			return nil, err
		}
		all := make([]Usage, len(sums))
		for i, u := range sums {
			all[i] = Usage(u)
			if all[i].Costs == nil {
				all[i].Costs = map[string]int64{}
			}
		}
		return offsetPage(all, in.Paging)
	})
}
