package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/extensions/agent/sent"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// showRequest shows the request of one step of a model: by its number in the tree, the first
// is 1, or by its id.
func showRequest(c *cobra.Command, k *admin.Client, t *admin.Trace, step string, asJSON bool) error {
	steps := t.Tree.Models()
	id := step
	if n, err := strconv.Atoi(step); err == nil {
		if n < 1 || n > len(steps) {
			return fmt.Errorf("--request %d: this message led to %s of models", n, count(len(steps), "step"))
		}
		id = steps[n-1].ID
	}
	r, err := sent.Read(c.Context(), k, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(c, r)
	}
	printerOf(c).request(r)
	return nil
}

// request prints a request to a model.
func (p *printer) request(r *sent.Request) {
	p.line("%s  %s asked %s, answered %s", r.Row, r.Agent, p.paint(green, r.Model), p.clock(r.At))
	p.faint(fmt.Sprintf("%s, %s, %d bytes. %s",
		count(len(r.Messages), "message"), count(len(r.Tools), "tool"), r.Bytes, r.Rebuilt))
	for _, m := range append(slices.Clip(r.Messages), r.Answer) {
		p.message(m)
	}
	p.line("\n%s", p.paint(gray, "Tools"))
	for _, t := range r.Tools {
		p.body(t.Name+": "+t.Description, "  ")
		p.faint("    " + string(t.Schema))
	}
}

func (p *printer) message(m sent.Message) {
	p.line("\n%s", p.paint(green, strings.TrimSpace(m.Role+" "+m.Name)))
	if m.Content != "" {
		p.body(m.Content, "  ")
	}
	for _, c := range m.Calls {
		p.body("calls "+c.Name+" "+c.Arguments, "  ")
	}
}
