package links

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"text/template"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompts/*.md"))

// peer is an agent that another agent can write to.
type peer struct{ ID, About string }

func (l *links) peers(agent string) (peers []peer) {
	for _, id := range l.peersOf(agent) {
		peers = append(peers, peer{id, l.linkBetween(agent, id).about(id)})
	}
	return peers
}

// frame returns the meta of an input on an agent's side: it explains the exchange,
// and when to conclude it, to each turn.
func (l *links) frame(x *exchange, self string) []byte {
	other := peer{ID: x.other(self)}
	if one := l.linkBetween(self, other.ID); one != nil {
		other.About = one.about(other.ID)
	}
	text, err := render("exchange.md", map[string]any{
		"ID": x.ID, "Self": self, "Peer": other, "Began": self == x.Initiator, "Mode": x.Mode, "NoReply": noReply,
		"Left": x.MaxMessages - x.Messages, "Max": x.MaxMessages,
		"Others": slices.DeleteFunc(l.peers(self), func(p peer) bool { return p.ID == other.ID }),
	})
	if err != nil {
		l.log.Error("cannot render the context of a turn", "exchange", x.ID, "error", err)
		return nil
	}
	meta := map[string]any{contract.MetaContext: map[string]string{ID + "/" + peersTool: text}}
	raw, _ := json.Marshal(meta) // cannot fail: strings
	return raw
}

// callPeers returns the context of a turn outside of links: the agents to write to.
func (l *links) callPeers(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	peers := l.peers(c.Agent)
	if len(peers) == 0 {
		return sdk.ToolResult{Nothing: true}, nil
	}
	_, from, err := l.current(ctx, c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	var open []*exchange
	err = l.k.Scan(ctx, openPrefixOf(from, c.Agent), func(v sdk.Value) error {
		var id string
		if err := v.Decode(&id); err != nil {
			return err
		}
		x, err := l.load(ctx, id)
		if err == nil && x != nil {
			open = append(open, x)
		}
		return err
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	text, err := render("peers.md", map[string]any{"Peers": peers, "Open": open})
	return sdk.ToolResult{Content: text}, err
}

func render(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := prompts.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("render %s: %w", name, err)
	}
	return b.String(), nil
}
