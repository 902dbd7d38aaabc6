package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// Extension is a channel, an agent, a source of tools or models, or several of these.
type Extension struct {
	ID          string     `json:"id"`
	Name        string     `json:"name,omitempty"`
	Version     string     `json:"version,omitempty"`
	Builtin     bool       `json:"builtin"`
	Kinds       []string   `json:"kinds" doc:"agent, channel, models, tools"`
	State       string     `json:"state" doc:"Of its process; disabled by the configuration, or invalid."`
	Readiness   string     `json:"readiness,omitempty" doc:"ready, unconfigured, degraded, offline, busy"`
	Detail      string     `json:"detail,omitempty" doc:"Why it is not active or not ready, and what to do."`
	PID         int64      `json:"pid,omitempty"`
	Since       *time.Time `json:"since,omitempty" doc:"Of the state."`
	RetryAt     *time.Time `json:"retry_at,omitempty"`
	Restarts    int32      `json:"restarts" doc:"After failures."`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
	Crash       string     `json:"crash,omitempty" doc:"The end of what its process wrote before it died."`
	Problem     string     `json:"problem,omitempty" doc:"Of its file, while an older version of it is in force."`
	Sandbox     *Sandbox   `json:"sandbox,omitempty"`
	Consent     *Consent   `json:"consent,omitempty" doc:"Absent: it asks for nothing beyond itself, or is built in."`
}

// Sandbox is what limits the process of an extension.
type Sandbox struct {
	Level   string   `json:"level" doc:"full, partial, none"`
	Network string   `json:"network,omitempty"`
	Files   []string `json:"files"`
	Reason  string   `json:"reason,omitempty" doc:"Why it is not full."`
}

// Consent is what a dropped-in extension asks for, and what the owner decided.
type Consent struct {
	State string   `json:"state" doc:"asks, allowed, refused"`
	Asks  []string `json:"asks"`
	More  []string `json:"more" doc:"Of what it asks for, what it was not allowed before."`
	Uses  []string `json:"uses" doc:"What it uses without asking."`
	Tools bool     `json:"tools" doc:"The default agent may use its tools."`
}

type extensionResponse struct{ Body Extension }

// Restarted is the result of a restart.
type Restarted struct {
	Extension Extension `json:"extension"`
	Restarted []string  `json:"restarted" doc:"All extensions of its process."`
}

type restartedResponse struct{ Body Restarted }

func (a *api) extensions(h huma.API) {
	add(h, op{
		method: http.MethodGet, path: "/extensions", id: "list-extensions", tag: "extensions", scope: door.ScopeAdmin,
		summary: "List the extensions, running or not",
	}, func(ctx context.Context, _ door.Visitor, in *Paging) (*listing[Extension], error) {
		all, err := a.allExtensions(ctx)
		if err != nil {
			return nil, err
		}
		return offsetPage(all, *in)
	})
	add(h, op{
		method: http.MethodGet, path: "/extensions/{id}", id: "get-extension", tag: "extensions", scope: door.ScopeAdmin,
		summary: "Show an extension",
	}, func(ctx context.Context, _ door.Visitor, in *ByID) (*extensionResponse, error) {
		x, err := a.extension(ctx, in.ID)
		return &extensionResponse{x}, err
	})
	add(h, op{
		method: http.MethodPost, path: "/extensions/{id}/restart", id: "restart-extension", tag: "extensions",
		scope: door.ScopeAdmin, summary: "Restart the process of an extension",
		about: "Waits up to 15 seconds for the extension to settle. With an Idempotency-Key it is the one operation that a " +
			"crash at that moment may repeat.",
	}, a.restart)
}

// own is the extension that the API is part of.
const own = "web_channel"

func (a *api) restart(ctx context.Context, _ door.Visitor, in *ByID) (*restartedResponse, error) {
	if in.ID == own {
		return nil, problem(http.StatusConflict, "",
			"the API can't restart itself; `switchboard extensions restart "+own+"` can")
	}
	if _, err := a.extension(ctx, in.ID); err != nil {
		return nil, err
	}
	done, err := a.Manage.Restart(ctx, &adminv1.RestartRequest{Id: in.ID})
	if err != nil {
		return nil, err
	}
	x, err := a.extension(ctx, in.ID)
	return &restartedResponse{Restarted{x, append([]string{}, done.GetRestarted()...)}}, err
}

func (a *api) extension(ctx context.Context, id string) (Extension, error) {
	all, err := a.allExtensions(ctx)
	if err != nil {
		return Extension{}, err
	}
	for _, x := range all {
		if x.ID == id {
			return x, nil
		}
	}
	return Extension{}, missing("extension", id)
}

func (a *api) allExtensions(ctx context.Context) ([]Extension, error) {
	rows, err := admin.Extensions(ctx, a.Read)
	if err != nil {
		return nil, err
	}
	now, err := a.Read.Status(ctx, &adminv1.StatusRequest{})
	if err != nil {
		return nil, err
	}
	admin.NoteBusy(rows, now.GetWaiting(), a.Now())
	all := make([]Extension, len(rows))
	for i, x := range rows {
		all[i] = extensionOf(x)
	}
	return all, nil
}

func extensionOf(x *adminv1.Extension) Extension {
	e := Extension{
		ID: x.GetId(), Name: x.GetName(), Version: x.GetVersion(), Builtin: x.GetBuiltin(),
		Kinds: append([]string{}, x.GetKinds()...), State: x.GetState(), Readiness: x.GetReadiness(), Detail: x.GetDetail(),
		PID: x.GetPid(), Since: moment(x.GetSinceUs()), RetryAt: moment(x.GetRetryAtUs()), Restarts: x.GetRestarts(),
		LastError: x.GetLastError(), LastErrorAt: moment(x.GetLastErrorAtUs()), Crash: x.GetCrash(), Problem: x.GetProblem(),
	}
	if s := x.GetSandbox(); s != nil {
		e.Sandbox = &Sandbox{s.GetLevel(), s.GetNetwork(), append([]string{}, s.GetFiles()...), s.GetReason()}
	}
	if c := x.GetConsent(); c != nil {
		e.Consent = &Consent{
			c.GetState(), append([]string{}, c.GetAsks()...), append([]string{}, c.GetMore()...),
			append([]string{}, c.GetUses()...), c.GetTools(),
		}
	}
	return e
}
