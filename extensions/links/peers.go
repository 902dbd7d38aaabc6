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

// peer is an agent that another one can talk to.
type peer struct{ ID, About string }

func (l *links) peers(agent string) (peers []peer) {
	for _, id := range l.peersOf(agent) {
		peers = append(peers, peer{id, l.between(agent, id).about(id)})
	}
	return peers
}

// frame is the meta of an input on the side of an agent: what the exchange is
// about, and when to conclude it. So it stands in the turn whatever happens.
func (l *links) frame(x *exchange, self string) []byte {
	other := peer{ID: x.other(self)}
	if one := l.between(self, other.ID); one != nil {
		other.About = one.about(other.ID)
	}
	text, err := render("exchange.md", map[string]any{
		"ID": x.ID, "Self": self, "Peer": other, "Began": self == x.Initiator, "Mode": x.Mode, "Silence": silence,
		"Left": x.MaxMessages - x.Messages, "Max": x.MaxMessages,
		"Others": slices.DeleteFunc(l.peers(self), func(p peer) bool { return p.ID == other.ID }),
	})
	if err != nil {
		l.log.Error("a turn on a link does not know what it is about", "exchange", x.ID, "error", err)
		return nil
	}
	raw, _ := json.Marshal(map[string]any{contract.MetaContext: map[string]string{ID + "/" + peersTool: text}}) // strings
	return raw
}

// tellPeers is the context of a turn that is on no link: who can be written to.
func (l *links) tellPeers(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
	peers := l.peers(c.Agent)
	if len(peers) == 0 {
		return sdk.ToolResult{Nothing: true}, nil
	}
	_, from, err := l.here(ctx, c)
	if err != nil {
		return sdk.ToolResult{}, err
	}
	var opened []*exchange
	err = l.k.Scan(ctx, openedPrefix(from, c.Agent), func(v sdk.Value) error {
		var id string
		if err := v.Decode(&id); err != nil {
			return err
		}
		x, err := l.load(ctx, id)
		if err == nil && x != nil {
			opened = append(opened, x)
		}
		return err
	})
	if err != nil {
		return sdk.ToolResult{}, err
	}
	text, err := render("peers.md", map[string]any{"Peers": peers, "Open": opened})
	return sdk.ToolResult{Content: text}, err
}

func render(name string, data any) (string, error) {
	var b bytes.Buffer
	if err := prompts.ExecuteTemplate(&b, name, data); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return b.String(), nil
}
