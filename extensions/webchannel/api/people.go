package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Person has one or more accounts.
type Person struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Role     string    `json:"role" enum:"owner,member,guest,blocked"`
	Timezone string    `json:"timezone,omitempty" doc:"An IANA name; absent: the configured one."`
	Quiet    string    `json:"quiet,omitempty" doc:"HH:MM-HH:MM"`
	Home     string    `json:"home,omitempty" doc:"The account that gets what names no conversation."`
	Accounts []Account `json:"accounts"`
}

// Account is a user of a channel.
type Account struct {
	ID         string     `json:"id"`
	Channel    string     `json:"channel"`
	UserID     string     `json:"user_id"`
	Name       string     `json:"name,omitempty"`
	Owner      bool       `json:"owner"`
	ApprovedAt *time.Time `json:"approved_at,omitempty" doc:"Absent: the configuration admits it."`
}

type personResponse struct{ Body Person }

type roleChange struct {
	ByID
	Body struct {
		Role string `json:"role" enum:"owner,member,guest,blocked"`
	}
}

func (a *api) people(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/people", id: "list-people", tag: "people", scope: door.ScopePeople,
		summary: "List the people with their accounts",
	}, func(ctx context.Context, _ door.Visitor, in *Paging) (*listing[Person], error) {
		all, err := a.allPeople(ctx)
		if err != nil {
			return nil, err
		}
		return offsetPage(all, *in)
	})
	add(h, op{
		method: http.MethodGet, path: "/people/{id}", id: "get-person", tag: "people", scope: door.ScopePeople,
		summary: "Show a person",
	}, func(ctx context.Context, _ door.Visitor, in *ByID) (*personResponse, error) {
		return a.person(ctx, in.ID)
	})
	add(h, op{
		method: http.MethodPatch, path: "/people/{id}", id: "change-person", tag: "people", scope: door.ScopePeople,
		summary: "Give a person a role",
		about:   "What runs and waits for a person who is blocked ends.",
	}, func(ctx context.Context, v door.Visitor, in *roleChange) (*personResponse, error) {
		if in.ID == v.Person && in.Body.Role != v.Role {
			return nil, problem(http.StatusUnprocessableEntity, "",
				fmt.Sprintf("you can't make yourself a %s; the command line can", in.Body.Role))
		}
		if _, err := a.person(ctx, in.ID); err != nil {
			return nil, err
		}
		if _, err := a.Manage.SetRole(ctx, &adminv1.SetRoleRequest{Person: in.ID, Role: in.Body.Role}); err != nil {
			return nil, err
		}
		return a.person(ctx, in.ID)
	})
}

func (a *api) person(ctx context.Context, id string) (*personResponse, error) {
	all, err := a.allPeople(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.ID == id {
			return &personResponse{p}, nil
		}
	}
	return nil, missing("person", id)
}

func (a *api) allPeople(ctx context.Context) ([]Person, error) {
	known, err := a.Read.People(ctx, &adminv1.PeopleRequest{})
	if err != nil {
		return nil, err
	}
	var all []Person
	for _, x := range known.GetPeople() {
		p := Person{
			ID: x.GetId(), Name: x.GetName(), Role: x.GetRole(), Timezone: x.GetTimezone(), Quiet: x.GetQuiet(),
			Home: x.GetHome(), Accounts: []Account{},
		}
		for _, c := range x.GetAccounts() {
			p.Accounts = append(p.Accounts, Account{
				ID: c.GetId(), Channel: c.GetChannel(), UserID: c.GetUserId(), Name: c.GetName(), Owner: c.GetOwner(),
				ApprovedAt: moment(c.GetApprovedAtUs()),
			})
		}
		all = append(all, p)
	}
	return all, nil
}
