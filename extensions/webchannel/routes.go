package webchannel

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/webchannel/api"
	"github.com/switchboard-run/switchboard/extensions/webchannel/board"
	"github.com/switchboard-run/switchboard/extensions/webchannel/hooks"
	"github.com/switchboard-run/switchboard/extensions/webchannel/mcpclients"
	"github.com/switchboard-run/switchboard/extensions/webchannel/metrics"
	openaiapi "github.com/switchboard-run/switchboard/extensions/webchannel/openai"
	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
	"github.com/switchboard-run/switchboard/extensions/webchannel/search"
	"github.com/switchboard-run/switchboard/extensions/webchannel/trace"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/netguard"
)

// public are the paths whose requests prove themselves, or whose answers are no secret. One
// that ends in a slash stands for all below it.
var public = slices.Concat(metrics.Public, []string{hooks.Prefix, iconPath, page.StaticPrefix})

// iconPath is what browsers ask for beside pages that name no icon.
const iconPath = "/favicon.ico"

// register adds the routes of all parts. Each part checks what its visitor may.
func (s *site) register(ctx context.Context, mux *http.ServeMux, k *sdk.Kernel, client *admin.Client, c Config) error {
	read, manage := client.ReadClient, client.ManageClient
	images, err := netguard.New(netguard.Options{})
	if err != nil {
		return err
	}
	mux.HandleFunc("GET "+iconPath, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	page.Register(mux, page.Options{Chat: s.chat, Files: s.chat, Watch: s.chat.Watch, Log: s.log})
	board.Register(mux, board.Options{
		Read: read, Manage: manage, Change: client, Chat: s.chat, Frame: inShell, Log: s.log,
	})
	logins{s.door, s.log}.register(mux)
	search.Register(mux, search.Options{Manage: manage})
	trace.Register(mux, trace.Options{Read: read})
	api.Register(mux, api.Options{
		Read: read, Manage: manage, Chat: s.chat, Files: s.chat, Store: k, Log: s.log, Closing: k.Draining(), Now: time.Now,
		Still: s.door.Still,
	})
	openaiapi.Register(mux, openaiapi.Options{
		Context: ctx, Chat: s.chat, Files: s.chat, Store: k, Read: read, Manage: manage, Images: images, Now: time.Now,
		Log: s.log.Named("openai"),
	})
	metrics.Register(mux, metrics.Options{Context: ctx, Read: read, Now: time.Now, Log: s.log.Named("metrics")})
	mcpclients.Register(mux, mcpclients.Options{
		Closing: k.Draining(), Kernel: client, Version: s.version, Log: s.log.Named("mcp"),
	})
	var problems []string
	s.hooks, problems = hooks.New(hooks.Options{
		Config: c.Config, Context: ctx, Channel: ID, Chat: s.chat, Store: k, Read: read, Manage: manage, Now: time.Now,
		Log: s.log.Named("hooks"),
	})
	s.hooks.Register(mux)
	if len(problems) > 0 {
		k.SetReadiness(sdk.Degraded, strings.Join(problems, "; "))
	}
	return nil
}

// body is a page of the board in the shell.
var body = page.ParseText(`{{.Data}}`)

// inShell writes a page of the board.
func inShell(w http.ResponseWriter, r *http.Request, p board.Page) {
	page.Render(w, r, page.Page{Title: p.Title, Active: p.Active, Status: p.Status, Content: body, Data: p.Body})
}
