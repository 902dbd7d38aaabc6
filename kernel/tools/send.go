package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// receiptWait is how long a send waits for the receipt of the platform.
const receiptWait = 10 * time.Second

// sent is the result of a sending tool.
type sent struct {
	Status  string `json:"status"` // delivered, queued, failed
	Channel string `json:"channel_id"`
	Detail  string `json:"detail,omitempty"`
}

func sendToChannel(ctx context.Context, r *running) (*extensionv1.CallResult, error) {
	var args struct {
		Channel string `json:"channel_id"`
		Text    string `json:"text"`
	}
	if err := json.Unmarshal(arguments(r.call.Arguments), &args); err != nil {
		return nil, err
	}
	return r.sendTo(ctx, []string{args.Channel}, args.Text)
}

func sendToAll(ctx context.Context, r *running) (*extensionv1.CallResult, error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(arguments(r.call.Arguments), &args); err != nil {
		return nil, err
	}
	dir := r.Directory.Current()
	var channels []string
	for i := range dir.Channels {
		if dir.Channels[i].Configured() {
			channels = append(channels, dir.Channels[i].ID)
		}
	}
	if len(channels) == 0 {
		return r.fail("No channel is set up. Nothing was sent.")
	}
	return r.sendTo(ctx, channels, args.Text)
}

// sendTo commits the sends together with a provisional result, then waits for
// receipts to refine it.
func (r *running) sendTo(ctx context.Context, channels []string, text string) (*extensionv1.CallResult, error) {
	if r.call.State == journal.CallRunning && r.call.Result == "" { // a backup was restored
		return r.fail(unknownOutcome(r.call.Name))
	}
	if r.call.State == journal.CallRunning { // sent before a restart
		return r.finish(r.call.Result, false)
	}
	dir := r.Directory.Current()
	for _, id := range channels {
		if why := unreachable(dir, id); why != "" {
			return r.fail(why + " Nothing was sent.")
		}
	}
	if strings.TrimSpace(text) == "" {
		return r.fail("The text is empty. Nothing was sent.")
	}
	in, err := r.input(ctx, r.lease, r.event)
	if err != nil {
		return nil, err
	}
	answers := make([]sent, len(channels))
	for i, id := range channels {
		answers[i] = sent{Status: "queued", Channel: id, Detail: "it will be delivered when the channel is ready"}
	}
	receipts := newReceipts(r.Bus)
	defer receipts.close()
	err = r.commit(func(tx *bus.Tx) error {
		for i, id := range channels {
			seqs, err := r.Router.SendTo(tx, id, text, in.ReplyTo, journal.SessionID(r.call.Session), journal.CallID(r.call.ID))
			if err != nil {
				return err
			}
			if c := dir.Channel(id); c.Ready() {
				receipts.await(tx, i, seqs)
			}
		}
		if err := r.Sessions.MarkSend(tx, r.call.ID); err != nil {
			return err
		}
		return r.Sessions.Start(tx, r.call.ID, encode(answers))
	})
	if err != nil {
		if errors.Is(err, contract.ErrStale) {
			return nil, err
		}
		return r.fail("Nothing was sent: " + err.Error())
	}
	waiting, cancel := context.WithTimeout(ctx, receiptWait)
	defer cancel()
	receipts.each(waiting, func(channel int, d journal.Delivery, last bool) {
		switch a := &answers[channel]; {
		case d.State == journal.Dead:
			a.Status, a.Detail = "failed", d.Reason
		case last && a.Status == "queued":
			a.Status, a.Detail = "delivered", ""
		}
	})
	failed := false
	for i := range answers {
		if c := dir.Channel(answers[i].Channel); !c.Ready() {
			answers[i].Detail = notReady(c)
		}
		failed = failed || answers[i].Status == "failed"
	}
	return r.finish(encode(answers), failed)
}

// unreachable says why a channel accepts no sends. A channel that is down accepts
// them, and delivers them later.
func unreachable(dir *directory.Snapshot, id string) string {
	c := dir.Channel(id)
	if c == nil {
		ids := make([]string, len(dir.Channels))
		for i := range dir.Channels {
			ids[i] = dir.Channels[i].ID
		}
		return fmt.Sprintf("There is no channel %q. There are: %s.", id, strings.Join(ids, ", "))
	}
	if !c.Configured() {
		return fmt.Sprintf("%s (%s) is not set up yet: %s.", c.Name, c.ID, strings.TrimSuffix(c.Readiness.GetDetail(), "."))
	}
	return ""
}

func notReady(c *directory.Channel) string {
	return fmt.Sprintf("%s is %s now; it is delivered when that changes", c.Name, c.Status())
}

func encode(answers []sent) string {
	var v any = map[string]any{"sent": answers}
	if len(answers) == 1 {
		v = answers[0]
	}
	b, _ := json.Marshal(v) // strings only
	return string(b)
}

// receipts waits for the receipts of sends, each of several parts.
type receipts struct {
	bus     *bus.Bus
	settled chan receipt
	over    chan struct{}
	parts   map[int]map[int64]struct{} // by send, those that are not settled
}

type receipt struct {
	send     int
	delivery journal.Delivery
}

func newReceipts(b *bus.Bus) *receipts {
	return &receipts{bus: b, settled: make(chan receipt), over: make(chan struct{}), parts: map[int]map[int64]struct{}{}}
}

// await waits for the parts of a send, once the commit is durable.
func (r *receipts) await(tx *bus.Tx, send int, seqs []int64) {
	r.parts[send] = map[int64]struct{}{} // the commit may be applied more than once
	for _, seq := range seqs {
		r.parts[send][seq] = struct{}{}
		tx.After(func() {
			r.bus.OnSettled(seq, func(d journal.Delivery) {
				select {
				case r.settled <- receipt{send, d}:
				case <-r.over:
				}
			})
		})
	}
}

// each calls settled for each settled part, and says whether it is the last of its
// send, until all are settled or ctx ends.
func (r *receipts) each(ctx context.Context, settled func(send int, d journal.Delivery, last bool)) {
	for len(r.parts) > 0 {
		select {
		case s := <-r.settled:
			delete(r.parts[s.send], s.delivery.Seq)
			last := len(r.parts[s.send]) == 0
			if last {
				delete(r.parts, s.send)
			}
			settled(s.send, s.delivery, last)
		case <-ctx.Done():
			return
		}
	}
}

// close stops waiting for the parts that are not settled.
func (r *receipts) close() {
	close(r.over)
	for _, parts := range r.parts {
		for seq := range parts {
			r.bus.ForgetSettled(seq)
		}
	}
}
