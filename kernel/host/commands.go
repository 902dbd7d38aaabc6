package host

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/command"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
)

// commandCalls calls the tools that people call as commands, for one extension.
type commandCalls struct {
	host     *Host
	instance *instance
	sink     *bus.Sink
	calls    sync.WaitGroup
	cancels  sync.Map // token -> context.CancelCauseFunc
}

// take runs the commands of a frame, and takes them out of it.
func (c *commandCalls) take(ctx context.Context, f bus.Frame) bus.Frame {
	f.Deliveries = slices.DeleteFunc(f.Deliveries, func(d *busv1.Delivery) bool { return c.begin(ctx, d) })
	f.Cancels = slices.DeleteFunc(f.Cancels, func(token string) bool {
		cancel, runs := c.cancels.Load(token)
		if runs {
			cancel.(context.CancelCauseFunc)(command.ErrTimeout)
		}
		return runs
	})
	return f
}

// begin runs a delivery if it is a command that the extension provides. It acknowledges a
// result of a tool that the extension does not want to know.
func (c *commandCalls) begin(ctx context.Context, d *busv1.Delivery) bool {
	if d.GetEvent().GetTopic() == contract.TopicToolResult+c.instance.actor.ID && !c.instance.handlesEvents() {
		c.host.Bus.Outcome(c.instance.actor, outcome(d, busv1.Outcome_KIND_ACK, ""))
		return true
	}
	name, is := strings.CutPrefix(d.GetEvent().GetTopic(), contract.TopicCommand)
	dir := c.host.Directory.Current()
	known := dir.Command(name)
	if !is || d.GetEvent().GetSource() != contract.KernelSource || known == nil || known.Extension != c.instance.actor.ID {
		return false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	c.cancels.Store(d.GetToken(), cancel)
	c.calls.Go(func() {
		defer cancel(nil)
		c.sink.Take(d.GetToken())
		o, answer := outcome(d, busv1.Outcome_KIND_ACK, ""), known.Title+" doesn't offer /"+name+" now."
		if t := dir.CommandTool(known); t != nil {
			o, answer = command.Run(ctx, d, &command.Tool{Tool: t.Tool, Schema: t.Schema}, dir.Location.String(), c.call)
		}
		c.cancels.Delete(d.GetToken())
		if c.instance.ctx.Err() == nil { // else the bus knows that the attempt has ended
			c.host.Bus.Answer(c.instance.actor, o, answer)
		}
	})
	return true
}

func (c *commandCalls) call(ctx context.Context, r *extensionv1.CallRequest) (*extensionv1.CallResult, error) {
	return c.host.callTool(ctx, c.instance, r)
}
