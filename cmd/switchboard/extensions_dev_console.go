package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/cmd/switchboard/dev"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const devHelp = `say TEXT            what a person says to the assistant
send TEXT           what the assistant says, through this channel
call TOOL [JSON]    call a tool of the extension with arguments
publish TOPIC JSON  publish an event
events              the newest events that the extension got
replay EVENT        publish such an event again
step                replay the next of its events, from the oldest; step EVENT begins with that one
trace EVENT         what followed from an event
restart             restart it
quit                end`

// read runs the commands of standard input until it ends; then the loop goes on.
func (d *devLoop) read(ctx context.Context, quit func()) {
	for lines := bufio.NewScanner(d.in); lines.Scan(); {
		command, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if command == "quit" || command == "exit" {
			quit()
			return
		}
		if err := d.do(ctx, command, strings.TrimSpace(rest)); err != nil && ctx.Err() == nil {
			d.tell("error", "%v", err)
		}
	}
}

func (d *devLoop) do(ctx context.Context, command, rest string) error {
	switch command {
	case "":
		return nil
	case "help":
		d.tell("help", "%s", devHelp)
		return nil
	case "say":
		return d.bench(ctx, "say", map[string]any{"text": rest})
	case "send":
		_, err := d.kernel.Send(ctx, &adminv1.SendRequest{Channel: d.id, Text: rest})
		return err
	case "call":
		name, arguments, _ := strings.Cut(rest, " ")
		result, err := tool(ctx, d.kernel, &adminv1.CallToolRequest{Name: d.id + "/" + name, Arguments: []byte(arguments)})
		if err == nil {
			d.tell("result", "%s", result)
		}
		return err
	case "publish":
		topic, payload, _ := strings.Cut(rest, " ")
		if !json.Valid([]byte(payload)) {
			return fmt.Errorf("publish %s: %q is not JSON", topic, payload)
		}
		return d.bench(ctx, "publish", map[string]any{"topic": topic, "payload": json.RawMessage(payload)})
	case "events":
		return d.events(ctx)
	case "replay", "step":
		return d.replay(ctx, rest, command == "step")
	case "trace":
		t, err := admin.ReadTrace(ctx, d.kernel, rest)
		if err == nil {
			d.printing.Lock()
			d.p.trace(t)
			d.printing.Unlock()
		}
		return err
	case "restart":
		d.restart(ctx)
		return nil
	}
	return fmt.Errorf("%s is not a command: `help` lists them", command)
}

// bench calls a tool of the extension that plays the world.
func (d *devLoop) bench(ctx context.Context, name string, fields map[string]any) error {
	_, err := callTool[json.RawMessage](ctx, d.kernel, dev.BenchID+"/"+name, fields)
	return err
}

// got returns the events after a seq that were delivered to the extension, oldest first.
func (d *devLoop) got(ctx context.Context, after int64) (got []admin.Event, err error) {
	all, err := admin.WithDeliveries(ctx, d.kernel, &adminv1.EventsRequest{After: after, Before: after + searched})
	for _, e := range slices.Backward(all) {
		for _, x := range e.Deliveries {
			if x.GetExtension() == d.id {
				got = append(got, e)
				break
			}
		}
	}
	return got, err
}

func (d *devLoop) events(ctx context.Context) error {
	got, err := d.got(ctx, 0)
	if err != nil {
		return err
	}
	if len(got) == 0 {
		d.tell("events", "it got none yet")
	}
	for _, e := range got[max(0, len(got)-20):] {
		d.tell("events", "%s %s from %s  %s", e.Id, e.Topic, e.Source, preview(e.Payload))
	}
	return nil
}

// replay publishes an event again, or the one after the last that was replayed.
func (d *devLoop) replay(ctx context.Context, id string, step bool) error {
	got, err := d.got(ctx, 0)
	if err != nil {
		return err
	}
	for _, e := range got {
		if id != "" && e.Id != id || id == "" && (!step || e.Seq <= d.replayed) {
			continue
		}
		d.replayed = e.Seq
		d.tell("replay", "%s %s", e.Id, e.Topic)
		if strings.HasPrefix(e.Topic, "channel.send.") {
			var m struct{ Text string }
			if err := json.Unmarshal(e.Payload, &m); err != nil {
				return err
			}
			return d.do(ctx, "send", m.Text)
		}
		return d.bench(ctx, "publish", map[string]any{"topic": e.Topic, "payload": json.RawMessage(e.Payload)})
	}
	if id == "" {
		return errors.New("there is no further event: `events` lists those that it got")
	}
	return fmt.Errorf("it got no event %s: `events` lists those that it got", id)
}
