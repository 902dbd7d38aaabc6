package links

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"text/template"

	"github.com/switchboard-run/switchboard/sdk"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompts/*.md"))

// peers is the context of a turn: on a side of a link what the exchange is and
// when to conclude it, elsewhere who can be written to.
func (l *links) peers(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	if s := l.sides[c.Session]; s != nil && c.Thread != "" {
		x, err := l.load(ctx, c.Thread)
		if err != nil {
			return sdk.ToolResult{}, err
		}
		if x != nil {
			return render("exchange.md", map[string]any{
				"Self": s.self, "Peer": s.peer, "About": s.link.about(s.peer), "ID": x.ID, "Over": x.Over, "Outcome": x.ending(), "Began": s.self == x.Initiator,
				"Left": max(0, x.MaxMessages-x.Messages), "Max": x.MaxMessages, "Mode": x.Mode, "Silence": silence,
			})
		}
	}
	type peer struct{ ID, About string }
	type open struct {
		ID, Peer      string
		Messages, Max int
	}
	var peers []peer
	for _, id := range l.peersOf(c.Agent) {
		peers = append(peers, peer{id, l.between(c.Agent, id).about(id)})
	}
	if len(peers) == 0 {
		return sdk.ToolResult{Nothing: true}, nil
	}
	var opened []open
	err := l.k.Scan(ctx, childrenPrefix(origin{c.Session, c.Thread}), func(v sdk.Value) error {
		var id string
		if err := v.Decode(&id); err != nil {
			return err
		}
		x, err := l.load(ctx, id)
		if err == nil && x != nil {
			opened = append(opened, open{x.ID, x.Peer, x.Messages, x.MaxMessages})
		}
		return err
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	return render("peers.md", map[string]any{"Peers": peers, "Open": opened})
}

func render(name string, data any) (sdk.ToolResult, error) {
	var b bytes.Buffer
	if err := prompts.ExecuteTemplate(&b, name, data); err != nil {
		return sdk.ToolResult{}, fmt.Errorf("write %s: %w", name, err)
	}
	return sdk.ToolResult{Content: b.String()}, nil
}
