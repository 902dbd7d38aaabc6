package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

// The tools of the extension links.
const (
	listLinks    = "links/list_links"
	showExchange = "links/show_exchange"
)

// linkList is the result of list_links.
type linkList struct {
	Links     []linked   `json:"links"`
	Exchanges []exchange `json:"exchanges"`
	More      int        `json:"more"`
}

// linked is one link of the configuration.
type linked struct {
	From        string            `json:"from"`
	To          string            `json:"to"`
	Mode        string            `json:"mode"`
	MaxMessages int               `json:"max_messages"`
	IdleSeconds int64             `json:"idle_seconds"`
	Sessions    map[string]string `json:"sessions,omitempty"`
	Problem     string            `json:"problem,omitempty"`
}

// exchange is one exchange of messages on a link.
type exchange struct {
	ID        string `json:"id"`
	Initiator string `json:"initiator"`
	Peer      string `json:"peer"`
	From      struct {
		Session  string `json:"session"`
		Exchange string `json:"exchange,omitempty"`
	} `json:"initiated_from"`
	Mode        string     `json:"mode"`
	MaxMessages int        `json:"max_messages"`
	Messages    int        `json:"messages"`
	OpenedAt    time.Time  `json:"opened_at"`
	ActiveAt    time.Time  `json:"active_at"`
	Over        bool       `json:"over"`
	Outcome     string     `json:"outcome,omitempty"`
	Summary     string     `json:"summary,omitempty"`
	EndedBy     string     `json:"ended_by,omitempty"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	Result      string     `json:"result_session,omitempty"`
}

func (x exchange) state() string {
	if x.Over {
		return x.Outcome
	}
	return "open"
}

// origin returns the place where the exchange began.
func (x exchange) origin(where *names) string {
	if x.From.Exchange != "" {
		return x.From.Exchange
	}
	return where.of(x.From.Session)
}

func newLinksCommand() *cobra.Command {
	return group("links", "Links between agents, and their exchanges", newLinksList(), newLinksShow())
}

func newLinksList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the links and the open exchanges", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	all := c.Flags().Bool("all", false, "also finished exchanges")
	c.RunE = withKernel("list the links", func(c *cobra.Command, k *admin.Client, _ []string) error {
		found, err := callTool[linkList](c.Context(), k, listLinks, map[string]any{"all": *all, "limit": 1000})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, found)
		}
		err = list(c, false, found.Links, "AGENTS MODE MESSAGES IDLE SESSIONS STATE",
			"No agents are linked. `links` in config.yaml links two agents.",
			func(_ *printer, l linked) []cell {
				state := state("ready")
				if l.Problem != "" {
					state = cell{"not in effect", red}
				}
				sessions := dash(strings.TrimSpace(l.Sessions[l.From] + " " + l.Sessions[l.To]))
				idle := (time.Duration(l.IdleSeconds) * time.Second).String()
				if whole, ok := strings.CutSuffix(idle, "m0s"); ok {
					idle = whole + "m"
				}
				return []cell{
					text(l.From + " - " + l.To), text(l.Mode), text(fmt.Sprint(l.MaxMessages)), text(idle),
					text(sessions), state,
				}
			})
		if err != nil || len(found.Links) == 0 && len(found.Exchanges) == 0 {
			return err
		}
		p, where := printerOf(c), namesOf(c.Context(), k)
		for _, l := range found.Links {
			if l.Problem != "" {
				p.wrapped(red, l.Problem, "  ")
			}
		}
		p.line("")
		err = list(c, false, found.Exchanges, "EXCHANGE FROM TO MESSAGES STATE ACTIVE BEGUN_IN", "No exchange is open.",
			func(_ *printer, x exchange) []cell {
				return []cell{
					text(x.ID), text(x.Initiator), text(x.Peer), text(fmt.Sprintf("%d of %d", x.Messages, x.MaxMessages)),
					state(x.state()),
					text(age(x.ActiveAt)), text(x.origin(where)),
				}
			})
		if err == nil && found.More > 0 {
			p.faint(fmt.Sprintf("and %d more", found.More))
		}
		return err
	})
	return c
}

// shownExchange is the result of show_exchange.
type shownExchange struct {
	Exchange exchange `json:"exchange"`
	Messages []struct {
		From string    `json:"from"`
		Text string    `json:"text"`
		At   time.Time `json:"at"`
	} `json:"messages"`
	Sessions map[string]string `json:"sessions"`
	Ending   string            `json:"ending"`
}

func newLinksShow() *cobra.Command {
	c := &cobra.Command{Use: "show EXCHANGE", Short: "Show the messages of an exchange, and how it ended",
		Args: cobra.ExactArgs(1), ValidArgsFunction: first(exchangeIDs)}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("show exchange", func(c *cobra.Command, k *admin.Client, args []string) error {
		raw, err := callTool[json.RawMessage](c.Context(), k, showExchange, map[string]any{"id": args[0]})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, raw)
		}
		var shown shownExchange
		if err := json.Unmarshal(raw, &shown); err != nil {
			return fmt.Errorf("read the answer of %s: %w", showExchange, err)
		}
		// For the exchanges that followed from it; an error only leaves them out.
		all, _ := callTool[linkList](c.Context(), k, listLinks, map[string]any{"all": true, "limit": 1000})
		printerOf(c).exchange(shown, all.Exchanges, namesOf(c.Context(), k))
		return nil
	})
	return c
}

func (p *printer) exchange(shown shownExchange, all []exchange, where *names) {
	x := shown.Exchange
	p.line("%s  %s → %s  %s", x.ID, x.Initiator, x.Peer, p.paint(stateColor(x.state()), x.state()))
	origin := "in " + where.with(x.From.Session)
	if x.From.Exchange != "" {
		origin = fmt.Sprintf("on the exchange %s, %s", x.From.Exchange, origin)
	}
	p.wrapped(gray, fmt.Sprintf("started %s %s, mode %s, %d of %d messages",
		p.clock(x.OpenedAt), origin, x.Mode, x.Messages, x.MaxMessages), "")
	for _, agent := range []string{x.Initiator, x.Peer} {
		if session := shown.Sessions[agent]; session != "" {
			p.wrapped(gray, fmt.Sprintf("the side of %s: `switchboard sessions show %s`", agent, session), "  ")
		}
	}
	for _, other := range all {
		if other.From.Exchange == x.ID {
			p.wrapped(gray, fmt.Sprintf("it led to %s, %s → %s: `switchboard links show %s`", other.ID, other.Initiator,
				other.Peer, other.ID), "  ")
		}
	}
	for _, m := range shown.Messages {
		p.line("\n%s  %s", p.paint(gray, p.clock(m.At)), p.paint(green, m.From))
		p.body(m.Text, "  ")
	}
	if !x.Over {
		return
	}
	at := ""
	if x.EndedAt != nil {
		at = p.paint(gray, p.clock(*x.EndedAt)) + "  "
	}
	p.line("\n%s%s", at, p.paint(stateColor(x.state()), shown.Ending))
	if x.Summary != "" {
		p.body(x.Summary, "  ")
	}
	if x.Result == "" {
		p.faint("the result was not delivered")
		return
	}
	p.wrapped(gray, "the result went to "+where.with(x.Result), "")
}

// exchangeIDs suggests exchanges, described by their agents.
func exchangeIDs(ctx context.Context, k *admin.Client) (ids []string, err error) {
	found, err := callTool[linkList](ctx, k, listLinks, map[string]any{"all": true})
	for _, x := range found.Exchanges {
		ids = append(ids, x.ID+"\t"+x.Initiator+" - "+x.Peer+", "+x.state())
	}
	return ids, err
}
