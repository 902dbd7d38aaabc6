package agent

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Past is what a request was made of.
type Past struct {
	Name     string // of the agent
	Spec     *extensionv1.AgentSpec
	Prompts  Prompts // nil: Plain
	Tools    []*extensionv1.Tool
	Channels []*kernelv1.Channel
	// Turn has what the turn knew of its conversation: Channel, ChannelName, Group, Extension.
	Turn *busv1.TurnContext
	// Rows are those of the session before the answer to the request, or as many of the newest
	// as may have been in it.
	Rows []*busv1.Entry
	// Instructions and Model are those that the input of the turn named; nil and empty: none.
	Instructions *string
	Model        string
	Location     *time.Location
	Now          time.Time // of the request
}

// Rebuild returns the request that led to an answer in a turn, as the loop makes requests of
// rows. It has the instructions, tools and channels of Past, where the real one had those of
// its time, and names pictures without showing them. It lacks what was not recorded: a
// note about an answer that broke off, and a choice of rows by a model's window that is
// smaller than the default. The rest is the same byte for byte.
func Rebuild(p Past) (*kernelv1.CompleteRequest, error) {
	a := New(Options{})
	prompts := p.Prompts
	if prompts == nil {
		prompts = Plain{}
	}
	a.start(nil, p.Name, p.Spec, prompts, cmp.Or(p.Location, time.UTC), hclog.NewNullLogger())
	t := &turn{
		a: a, context: p.Turn, zone: a.zone, id: p.Turn.GetTurn(), model: p.Model, persona: p.Instructions,
		tools: newToolset(p.Tools, a.offers).offer(p.Turn.GetExtension()), channels: describeChannels(p.Channels),
		history: &history{session: p.Turn.GetSession(), group: p.Turn.GetGroup()}, pictures: pictures{},
	}
	for _, e := range p.Rows {
		if !a.noHistory || e.GetTurn() == t.id {
			t.history.add(e, e.GetTurn())
		}
	}
	system, err := prompts.System(t.scene(p.Now))
	if err != nil {
		return nil, fmt.Errorf("render the system prompt of %s: %w", p.Name, err)
	}
	t.system = strings.TrimSpace(system)
	return t.composed(""), nil
}
