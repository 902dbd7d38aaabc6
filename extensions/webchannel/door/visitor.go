package door

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Scopes of tokens. A token may do what its scopes name, and never more than the person it
// belongs to. Writing includes reading.
const (
	ScopeAll   = "all"   // everything that the person may
	ScopeRead  = "read"  // reading everything that the person may read
	ScopeAdmin = "admin" // the owner's side: extensions, configuration, dead letters, backups

	ScopeChannels  = "channels"
	ScopeEvents    = "events"   // reading events
	ScopeMemory    = "memory"   // reading and changing memories
	ScopeMessages  = "messages" // sending messages and reading their answers; the OpenAI-compatible endpoint
	ScopePeople    = "people"
	ScopeSchedules = "schedules"
	ScopeSessions  = "sessions" // sessions and transcripts
	ScopeTasks     = "tasks"
	ScopeUsage     = "usage"
	ScopeMetrics   = "metrics"

	// ScopeMCP and the name of a client of mcp.clients: being that MCP client. Only the owner's
	// tokens may have it, and no other scope includes it.
	ScopeMCP = "mcp:"
)

// Scopes lists all scopes.
var Scopes = []string{
	ScopeAll, ScopeRead, ScopeAdmin, ScopeChannels, ScopeEvents, ScopeMemory, ScopeMessages, ScopeMetrics, ScopePeople,
	ScopeSchedules, ScopeSessions, ScopeTasks, ScopeUsage,
}

// Visitor is the person of a request that was let in, and what the request may do.
type Visitor struct {
	User     string // user id on the channel; also the address of the person's conversations
	Account  string // id of the account on the channel: for whom tools are called
	Person   string // id
	Name     string // as shown to people
	Role     string // owner, member, guest
	Language string // of the request, an IETF tag; empty: English
	Token    string // name of the token; empty: a page in which the person is logged in
	Scopes   []string
	// Login identifies the login of a page; it changes with each one and is no secret.
	Login string
	Began time.Time // of the login
}

// freshLogin is for how long a login counts as fresh.
const freshLogin = 15 * time.Minute

// Fresh reports whether the person logged in a moment ago: whoever has the cookie of an older
// login has no link, which only the command line and the person's other channels give.
func (v Visitor) Fresh(now time.Time) bool { return v.Login != "" && now.Sub(v.Began) < freshLogin }

// Owner reports whether the visitor is the owner.
func (v Visitor) Owner() bool { return v.Role == "owner" }

// May reports whether the request may use a scope: to change something, or just to read.
// The scopes admin, events and metrics concern everyone and are the owner's alone.
func (v Visitor) May(scope string, change bool) bool {
	switch scope {
	case ScopeAdmin, ScopeEvents, ScopeMetrics, ScopeChannels, ScopePeople, ScopeUsage:
		if !v.Owner() {
			return false
		}
	}
	if v.Person == "" || v.Role == "guest" && scope != ScopeMessages {
		return false
	}
	return v.Token == "" || slices.Contains(v.Scopes, ScopeAll) || slices.Contains(v.Scopes, scope) ||
		!change && slices.Contains(v.Scopes, ScopeRead)
}

// MCPClient is the MCP client that the request's token is; empty: none.
func (v Visitor) MCPClient() string {
	if v.Token == "" || !v.Owner() {
		return ""
	}
	for _, s := range v.Scopes {
		if name, is := strings.CutPrefix(s, ScopeMCP); is {
			return name
		}
	}
	return ""
}

type visitorKey struct{}

// With returns a context of a visitor's request.
func With(ctx context.Context, v Visitor) context.Context {
	return context.WithValue(ctx, visitorKey{}, v)
}

// From returns the visitor of a request that Door let in; others have the zero value, which
// may do nothing.
func From(ctx context.Context) Visitor {
	v, _ := ctx.Value(visitorKey{}).(Visitor)
	return v
}
