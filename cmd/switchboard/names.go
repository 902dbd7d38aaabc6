package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// names resolves and caches the names of sessions.
type names struct {
	ctx   context.Context
	k     *admin.Client
	known map[string]string
}

func namesOf(ctx context.Context, k *admin.Client) *names {
	return &names{ctx: ctx, k: k, known: map[string]string{}}
}

// of returns the name of a session; its id if it has none.
func (n *names) of(id string) string {
	if id == "" {
		return "-"
	}
	name, known := n.known[id]
	if !known {
		s, err := admin.Session(n.ctx, n.k, id)
		if name = cmp.Or(s.Name, id); errors.Is(err, contract.ErrNotFound) {
			name = id + ", which was deleted"
		}
		n.known[id] = name
	}
	return name
}

// with returns the name of a session with its id.
func (n *names) with(id string) string {
	if name := n.of(id); name != id && id != "" {
		return name + " (" + id + ")"
	}
	return cmp.Or(id, "-")
}
