package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/topic"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// endTime is how long a revocation waits for extensions to say what they ended.
const endTime = 10 * time.Second

// revocation is what ended with an approval.
type revocation struct {
	Channel string `json:"channel"`
	User    string `json:"user_id"`
	endings
}

// endings are what ended for a person.
type endings struct {
	Turns     int32                  `json:"turns"`
	Jobs      int32                  `json:"jobs"`
	Questions int32                  `json:"questions"`
	Messages  int32                  `json:"messages"`
	Others    []contract.PersonEnded `json:"extensions"`
	Late      []string               `json:"pending,omitempty"` // extensions that have not ended theirs yet
}

func newPairingRevoke() *cobra.Command {
	c := &cobra.Command{
		Use: "revoke CHANNEL USER", Short: "Revoke an approval", Args: cobra.ExactArgs(2),
		Long: "Revokes the approval of a person, and ends what they set up: what the assistant is working on for\n" +
			"them, their reminders, tasks and open questions, and messages on the way to them.",
		ValidArgsFunction: func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return suggest(channelIDs)(c, args, begun)
			case 1:
				return suggest(peopleOn(args[0]))(c, args, begun)
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("revoke the approval on", func(c *cobra.Command, k *admin.Client, args []string) error {
		out, err := k.Revoke(c.Context(), &adminv1.RevokeRequest{Channel: args[0], UserId: args[1]})
		if err != nil {
			return err
		}
		e := revocation{Channel: args[0], User: args[1], endings: endedBy(out)}
		if err := e.collect(c.Context(), k, out.Event); err != nil {
			return fmt.Errorf("%s is revoked; read what has ended: %w", e.User, err)
		}
		if *asJSON {
			return printJSON(c, e)
		}
		p := printerOf(c)
		p.line("%s is no longer approved on %s.", e.User, e.Channel)
		p.endings(e.endings)
		return nil
	})
	return c
}

func endedBy(out *adminv1.RevokeResponse) endings {
	return endings{
		Turns: out.Turns, Jobs: out.Jobs, Questions: out.Questions, Messages: out.Sends, Others: []contract.PersonEnded{},
	}
}

// collect waits until the extensions have ended what they keep, and reads what that was.
func (e *endings) collect(ctx context.Context, k *admin.Client, events ...string) error {
	late := time.After(endTime)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		deliveries, err := admin.Deliveries(ctx, k, &adminv1.DeliveriesRequest{Events: events})
		if err != nil {
			return err
		}
		e.Late = nil
		for _, d := range deliveries {
			if (d.State == "pending" || d.State == "in flight") && !slices.Contains(e.Late, d.Extension) {
				e.Late = append(e.Late, d.Extension)
			}
		}
		if len(e.Late) == 0 {
			break
		}
		select {
		case <-again.C:
			continue
		case <-late:
		case <-ctx.Done():
			return ctx.Err()
		}
		break
	}
	for _, event := range events {
		followed, err := admin.Events(ctx, k, &adminv1.EventsRequest{CorrelationId: event})
		if err != nil {
			return err
		}
		for _, one := range slices.Backward(followed) {
			var theirs contract.PersonEnded
			if topic.Owner(one.Topic) == one.Source && strings.HasSuffix(one.Topic, ".ended") &&
				json.Unmarshal(one.Payload, &theirs) == nil {
				e.add(theirs)
			}
		}
	}
	return nil
}

// add adds what an extension has ended, to what it has ended of the same kind.
func (e *endings) add(theirs contract.PersonEnded) {
	for i := range e.Others {
		if e.Others[i].Kind == theirs.Kind {
			e.Others[i].Names = append(e.Others[i].Names, theirs.Names...)
			return
		}
	}
	e.Others = append(e.Others, theirs)
}

func (p *printer) endings(e endings) {
	var counted []string
	for _, one := range []struct {
		n    int32
		what string
	}{
		{e.Turns, "answer"}, {e.Jobs, "job"}, {e.Questions, "open question"}, {e.Messages, "unsent message"},
	} {
		if one.n > 0 {
			counted = append(counted, count(int(one.n), one.what))
		}
	}
	for _, other := range e.Others {
		counted = append(counted, count(len(other.Names), other.Kind))
	}
	if len(counted) > 0 {
		p.line("Ended: %s.", strings.Join(counted, ", "))
	}
	for _, other := range e.Others {
		for _, name := range other.Names {
			p.line("- %s %s", other.Kind, name)
		}
	}
	if len(e.Late) > 0 {
		p.line("Not ended yet: what %s keeps. That follows when it runs again; nothing of it is sent.",
			strings.Join(e.Late, " and "))
	}
}
