package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// Limits of a request.
const (
	maxBody     = 1 << 20
	bodyTimeout = 10 * time.Second
	timeout     = 30 * time.Second // of an operation that neither streams nor waits
)

// op describes an operation.
type op struct {
	method, path string // below /api/v1
	id, summary  string
	tag          string
	scope        string // empty: any visitor
	about        string // more than the summary
	status       int    // of success; 0: 200
	long         bool   // it streams or waits, and bounds itself
	raw          bool   // its body is a file, which is streamed
	responses    map[string]*huma.Response
}

// change reports whether the operation changes something.
func (o op) change() bool { return o.method != http.MethodGet }

const prefix = "/api/v1"

// add registers an operation. Its handler runs only for visitors who may do it.
func add[I, O any](a huma.API, o op, handle func(context.Context, door.Visitor, *I) (*O, error)) {
	described := huma.Operation{
		OperationID: o.id, Method: o.method, Path: prefix + o.path, Summary: o.summary, Tags: []string{o.tag},
		Description: describe(o), DefaultStatus: o.status, Responses: o.responses,
		MaxBodyBytes: maxBody, BodyReadTimeout: bodyTimeout,
		Errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests},
	}
	if o.raw {
		described.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}
	}
	if o.method == http.MethodPost {
		described.Parameters = []*huma.Param{keyParameter()}
	}
	huma.Register(a, described, func(ctx context.Context, in *I) (*O, error) {
		v := door.From(ctx)
		if err := allowed(v, o); err != nil {
			return nil, err
		}
		if !o.long {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		out, err := handle(ctx, v, in)
		if err != nil {
			return nil, problemOf(err)
		}
		return out, nil
	})
}

func describe(o op) string {
	switch {
	case o.scope == "":
		return o.about
	case o.change():
		return join(o.about, "Scope: "+o.scope+" or all.")
	}
	return join(o.about, "Scope: "+o.scope+", read or all.")
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}

// allowed refuses a visitor who may not do an operation.
func allowed(v door.Visitor, o op) error {
	switch {
	case v.User == "":
		return problem(http.StatusUnauthorized, "", "log in, or send a token: Authorization: Bearer TOKEN")
	case o.scope == "" || v.May(o.scope, o.change()):
		return nil
	case !(door.Visitor{Role: v.Role, User: v.User}).May(o.scope, o.change()):
		return problem(http.StatusForbidden, typeScope,
			fmt.Sprintf("a %s may not use %s; the owner may", v.Role, o.scope))
	}
	return problem(http.StatusForbidden, typeScope, fmt.Sprintf(
		"the token %q lacks the scope %s; make one with `switchboard tokens create NAME --scope %s`",
		v.Token, o.scope, o.scope))
}
