package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/mcpserver/clients"
)

// acting is a client with the person for whom it acts.
type acting struct {
	clients.Client
	person string // id; empty: the owner, from whom nothing is kept apart
}

// asked names the person whom the client asks; empty: the owner.
func (c acting) asked() string {
	if c.Person == "" {
		return ""
	}
	return "@" + c.person
}

// personOf returns the id of the person for whom a client acts. While all people are the
// owner, nothing is kept apart.
func personOf(ctx context.Context, k *admin.Client, client clients.Client) (id string, err error) {
	all, err := k.People(ctx, &adminv1.PeopleRequest{})
	if err != nil {
		return "", err
	}
	var found []*adminv1.Person
	others := false
	for _, p := range all.GetPeople() {
		isOwner := p.GetRole() == "owner"
		others = others || !isOwner
		if client.Person == "" && isOwner || client.Person != "" && strings.EqualFold(p.GetName(), client.Person) {
			found = append(found, p)
		}
	}
	switch {
	case client.Person == "" && (!others || len(found) == 0):
		return "", nil
	case len(found) != 1:
		return "", fmt.Errorf("%w: %d people are named %q (mcp.clients.%s.person in config.yaml); `switchboard people list` "+
			"lists them", contract.ErrNotFound, len(found), client.Person, client.Name)
	case found[0].GetRole() == "blocked":
		return "", fmt.Errorf("%w: %s, for whom the client %s acts, is blocked (mcp.clients.%[3]s.person in config.yaml)",
			contract.ErrDenied, client.Person, client.Name)
	}
	return found[0].GetId(), nil
}
