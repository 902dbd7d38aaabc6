package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Me is whose request it is, and what it may do.
type Me struct {
	Person   string   `json:"person" doc:"Id of the person."`
	Account  string   `json:"account" doc:"Id of the person's account on this channel."`
	Name     string   `json:"name"`
	Role     string   `json:"role" enum:"owner,member,guest"`
	Language string   `json:"language,omitempty"`
	Token    string   `json:"token,omitempty" doc:"Name of the token; absent in a page."`
	Scopes   []string `json:"scopes"`
}

type meResponse struct{ Body Me }

func (a *api) me(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/me", id: "get-me", tag: "me", summary: "Show whose token this is, and its scopes",
	}, func(_ context.Context, v door.Visitor, _ *struct{}) (*meResponse, error) {
		return &meResponse{Me{
			Person: v.Person, Account: v.Account, Name: v.Name, Role: v.Role, Language: v.Language, Token: v.Token,
			Scopes: append([]string{}, v.Scopes...),
		}}, nil
	})
}
