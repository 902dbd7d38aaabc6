package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Channel is a way to reach people.
type Channel struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Status    string   `json:"status" doc:"ready, unconfigured, degraded, offline, or the state of its process."`
	Detail    string   `json:"detail,omitempty"`
	Default   bool     `json:"default" doc:"Notices that name no channel go here."`
	MaxLength int32    `json:"max_length" doc:"Of a text; 0: no limit."`
	AllowFrom []string `json:"allow_from" doc:"People admitted by the configuration."`
	Agent     string   `json:"agent,omitempty" doc:"Answers here unless a conversation chose another one."`
}

type channelResponse struct{ Body Channel }

func (a *api) channels(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/channels", id: "list-channels", tag: "channels", scope: door.ScopeChannels,
		summary: "List the channels with their readiness",
	}, func(ctx context.Context, _ door.Visitor, in *Paging) (*listing[Channel], error) {
		all, err := a.allChannels(ctx)
		if err != nil {
			return nil, err
		}
		return offsetPage(all, *in)
	})
	add(h, op{
		method: http.MethodGet, path: "/channels/{id}", id: "get-channel", tag: "channels", scope: door.ScopeChannels,
		summary: "Show a channel",
	}, func(ctx context.Context, _ door.Visitor, in *ByID) (*channelResponse, error) {
		all, err := a.allChannels(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			if c.ID == in.ID {
				return &channelResponse{c}, nil
			}
		}
		return nil, missing("channel", in.ID)
	})
}

// ByID names what an operation is about.
type ByID struct {
	ID string `path:"id" maxLength:"300"`
}

func (a *api) allChannels(ctx context.Context) ([]Channel, error) {
	dir, err := a.Read.Directory(ctx, &adminv1.DirectoryRequest{})
	if err != nil {
		return nil, err
	}
	var all []Channel
	for _, c := range admin.Channels(dir) {
		all = append(all, Channel(c))
	}
	return all, nil
}
