package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/coretool"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/people"
)

// receiptWait is how long a send waits for the receipt of the platform.
const receiptWait = 10 * time.Second

// Send sends a text to the default recipient of a channel, and waits for the
// receipt of the platform if the channel is ready.
func (r *Runner) Send(ctx context.Context, channel, text string) (*coretool.Sent, error) {
	sends, err := queue(r.Directory.Current(), channel)
	if err == nil {
		err = r.deliver(ctx, sends, contract.ChannelSend{Text: text}, "", "", r.Bus.Do)
	}
	if err != nil {
		return nil, err
	}
	return &sends[0], nil
}

const (
	// toChannel is the tool that sends a text on a channel.
	toChannel = "core/send_to_channel"
	// toAll is the tool that sends a text to every channel that is set up.
	toAll = "core/send_to_all_channels"
)

// send runs a tool that sends: it commits the sends together with a provisional
// result, then waits for receipts to refine it.
func send(ctx context.Context, r *running) (*extensionv1.CallResult, error) {
	switch {
	case r.call.State == journal.CallRunning && r.call.Result == "": // a backup was restored
		return r.fail(unknownOutcome(r.call.Name))
	case r.call.State == journal.CallRunning: // sent before a restart
		return r.finish(r.call.Result, false)
	}
	var args message
	if err := json.Unmarshal(arguments(r.call.Arguments), &args); err != nil {
		return nil, err
	}
	m := contract.ChannelSend{
		Text: args.Text, Session: journal.SessionID(r.call.Session), Call: journal.CallID(r.call.ID),
	}
	sends, replyTo, err := r.address(ctx, args, &m)
	if err != nil {
		return r.fail(err.Error() + ". Nothing was sent.")
	}
	asker := "" // a job's results wait for the end of quiet hours
	if r.in.Kind == contract.InputUser {
		asker = r.in.Person
	}
	err = r.deliver(ctx, sends, m, replyTo, asker, func(apply func(*bus.Tx) error) error {
		return r.commit(func(tx *bus.Tx) error {
			return errors.Join(apply(tx), r.Sessions.MarkSend(tx, r.call.ID),
				r.Sessions.Start(tx, r.call.ID, coretool.SentResult(sends)))
		})
	})
	switch {
	case errors.Is(err, contract.ErrStale):
		return nil, err
	case err != nil:
		return r.fail("Nothing was sent: " + err.Error())
	}
	failed := func(d coretool.Sent) bool { return d.Status == coretool.SendFailed }
	return r.finish(coretool.SentResult(sends), slices.ContainsFunc(sends, failed))
}

// message holds the arguments of a tool that sends.
type message struct {
	Channel     string   `json:"channel_id"`
	Person      string   `json:"person"`
	Text        string   `json:"text"`
	Attachments []string `json:"attachments"`
}

// address returns where a message goes. One of a person other than the owner reaches the
// owner of a channel only by name: without one, it goes to that person's own chat there.
func (r *running) address(ctx context.Context, args message, m *contract.ChannelSend,
) (sends []coretool.Sent, replyTo string, err error) {
	if contract.Blank(args.Text) {
		return nil, "", errors.New("the text is empty")
	}
	of, to, elsewhere := r.in.principal, contract.Recipient{ReplyTo: r.in.ReplyTo}, args.Channel != r.in.channel
	own := r.call.Name == toChannel && elsewhere && of.Own && !slices.Contains(of.Accounts, people.Owner)
	if args.Person = strings.TrimSpace(args.Person); args.Person != "" || own {
		if to, err = r.named(ctx, of, args.Person, args.Channel); err != nil {
			return nil, "", err
		}
		args.Channel, m.Language, to.ReplyTo = to.ChannelID, to.Language, cmp.Or(to.ReplyTo, r.in.ReplyTo)
	}
	if args.Person != "" {
		m.Text = words.Say(to.Language, "From %s: %s", to.From, args.Text)
	}
	dir, channels := r.Directory.Current(), []string{args.Channel}
	if r.call.Name == toAll {
		channels = nil
		for i := range dir.Channels {
			if dir.Channels[i].Configured() {
				channels = append(channels, dir.Channels[i].ID)
			}
		}
	}
	if sends, err = queue(dir, channels...); err == nil {
		sends[0].To = to.Text
		m.Attachments, err = r.files(ctx, args.Attachments)
	}
	return sends, to.ReplyTo, err
}

// named returns where a private message for the person of a name goes.
func (r *Runner) named(ctx context.Context, of contract.Principal, name, channel string,
) (to contract.Recipient, err error) {
	err = r.Bus.View(ctx, func(j journal.Reader) (err error) {
		to, err = r.Router.Named(j, of, name, channel)
		return err
	})
	return to, err
}

// findPerson answers core/find_person.
func findPerson(ctx context.Context, r *Runner, q *extensionv1.CallRequest) (any, error) {
	var args message
	if err := json.Unmarshal(q.GetArguments(), &args); err != nil {
		return nil, err
	}
	return r.named(ctx, contract.PrincipalOf(q.GetPrincipal()), args.Person, args.Channel)
}

// files returns the files of the session that references name.
func (r *running) files(ctx context.Context, references []string) (all []contract.Attachment, err error) {
	err = r.Bus.View(ctx, func(j journal.Reader) error {
		for _, reference := range references {
			a, err := contract.ParseReference(reference)
			if err != nil {
				return fmt.Errorf("%w: %w", contract.ErrInvalid, err)
			}
			b, err := bus.FindBlob(j, &bus.Actor{ID: r.who()}, r.lease, a.InSession())
			if err != nil {
				return err
			}
			a.Blob, a.Size = b.Hash, b.Size
			all = append(all, a)
		}
		return nil
	})
	return all, err
}

// queue returns sends to channels that have no receipt yet. A channel that is down
// accepts them, and delivers them later.
func queue(dir *directory.Snapshot, channels ...string) (sends []coretool.Sent, err error) {
	for _, id := range channels {
		c := dir.Channel(id)
		switch {
		case c == nil:
			ids := make([]string, len(dir.Channels))
			for i := range dir.Channels {
				ids[i] = dir.Channels[i].ID
			}
			return nil, fmt.Errorf("%w: there is no channel %q; there are: %s", contract.ErrNotFound, id,
				strings.Join(ids, ", "))
		case !c.Configured():
			return nil, fmt.Errorf("%w: %s (%s) is not set up yet: %s", contract.ErrUnavailable, c.Name, id,
				strings.TrimSuffix(c.Readiness.GetDetail(), "."))
		}
		d := coretool.Sent{Status: coretool.SendQueued, Channel: id}
		d.Detail = fmt.Sprintf("no receipt from %s yet; delivery is retried until it succeeds", c.Name)
		if !c.Ready() {
			d.Detail = fmt.Sprintf("%s is %s now; it is delivered when that changes", c.Name, c.Status())
		}
		sends = append(sends, d)
	}
	if len(sends) == 0 {
		err = fmt.Errorf("%w: no channel is set up", contract.ErrUnavailable)
	}
	return sends, err
}

// deliver commits sends, and waits up to receiptWait for the receipts of channels
// that are ready.
func (r *Runner) deliver(
	ctx context.Context, sends []coretool.Sent, m contract.ChannelSend, replyTo, asker string,
	commit func(apply func(*bus.Tx) error) error,
) error {
	var parts map[int64]*coretool.Sent // that are not settled
	var settled chan journal.Delivery
	if err := commit(func(tx *bus.Tx) error {
		parts = map[int64]*coretool.Sent{} // the commit may be applied more than once
		for i := range sends {
			d := &sends[i]
			d.Events = nil
			seqs, err := r.Router.SendTo(tx, d.Channel, replyTo, asker, m)
			if err != nil {
				return err
			}
			if len(seqs) == 0 {
				d.Detail = "kept until the recipient's quiet hours end"
			}
			for _, seq := range seqs {
				d.Events = append(d.Events, journal.EventID(seq))
				if r.Directory.Current().Channel(d.Channel).Ready() {
					parts[seq] = d
				}
			}
		}
		settled = make(chan journal.Delivery, len(parts))
		for seq := range parts {
			tx.After(func() { r.Bus.OnSettled(seq, func(d journal.Delivery) { settled <- d }) })
		}
		return nil
	}); err != nil {
		return err
	}
	defer func() {
		for seq := range parts {
			r.Bus.ForgetSettled(seq)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, receiptWait)
	defer cancel()
	for len(parts) > 0 {
		select {
		case part := <-settled:
			d := parts[part.Seq]
			delete(parts, part.Seq)
			if part.ProviderID != "" {
				d.ProviderIDs = append(d.ProviderIDs, part.ProviderID)
			}
			switch {
			case part.State == journal.Dead:
				d.Status, d.Detail = coretool.SendFailed, part.Reason
			case d.Status == coretool.SendQueued && !slices.Contains(slices.Collect(maps.Values(parts)), d):
				d.Status, d.Detail = coretool.SendDelivered, ""
			}
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
