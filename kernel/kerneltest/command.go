package kerneltest

import (
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
)

// Commands returns a running extension that handles slash commands.
func (w *World) Commands(id string, names ...string) *Extension {
	w.T.Helper()
	x := w.Extension(bus.Actor{ID: id}, bus.Subscription{
		Pattern:    contract.TopicCommand + "*",
		Commands:   names,
		Ordered:    true,
		AckWait:    10 * time.Minute,
		MaxDeliver: 3,
		MaxAge:     10 * time.Minute,
	})
	w.Know(func(s *directory.Snapshot) {
		s.Commands = slices.Clone(s.Commands)
		for _, name := range names {
			s.Commands = append(s.Commands, command.Slash{
				Name:        name,
				Description: "what " + name + " does",
				Extension:   id,
				Title:       strings.ToUpper(id[:1]) + id[1:],
				State:       contract.StateActive,
			})
		}
	})
	return x
}

// Says acknowledges a command with an answer to who gave it.
func (x *Extension) Says(d *busv1.Delivery, content string, effects ...*busv1.Effect) {
	x.w.Bus.Answer(x.Actor, &busv1.Outcome{Token: d.GetToken(), Kind: busv1.Outcome_KIND_ACK, Effects: effects}, content)
	x.w.Settle()
}
