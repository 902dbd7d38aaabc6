package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/sessions"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newSessionsSearch() *cobra.Command {
	c := &cobra.Command{
		Use: "search WORDS...", Short: "Search all conversations by their words", Args: cobra.MinimumNArgs(1),
		Long: "Finds the messages and answers that have all of the words, in any form, the newest first: reminders finds\n" +
			"\"remind\". Words in quotation marks must follow one another, and remin* stands for all words that begin\n" +
			"like it. The first search reads all conversations, which can take some seconds.",
		Example: "  switchboard sessions search plumber tuesday\n" +
			"  switchboard sessions search '\"the blue kettle\"' --channel telegram_channel",
	}
	asJSON := jsonFlag(c)
	fields := map[string]*string{
		"agent":      c.Flags().String("agent", "", "only what was said to and by one agent"),
		"channel":    c.Flags().String("channel", "", "only conversations on one channel"),
		"session_id": c.Flags().String("session", "", "only one session"),
		"before":     c.Flags().String("before", "", "only older ones: as an earlier search with --json says"),
	}
	limit := c.Flags().IntP("limit", "n", 20, "how many")
	completeFlag(c, "agent", agentIDs)
	completeFlag(c, "channel", channelIDs)
	completeFlag(c, "session", sessionIDs)
	c.RunE = withKernel("search the conversations", func(c *cobra.Command, k *admin.Client, words []string) error {
		if *limit < 1 || *limit > sessions.MaxHits {
			return fmt.Errorf("--limit %d: give 1 to %d", *limit, sessions.MaxHits)
		}
		query := map[string]any{"query": strings.Join(words, " "), "limit": *limit, "marks": true}
		for name, value := range fields {
			if *value != "" {
				query[name] = *value
			}
		}
		found, err := callTool[sessions.Found](c.Context(), k, sessions.SearchTool, query)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, found)
		}
		return printerOf(c).found(c, k, found)
	})
	return c
}

// found prints what a search has found.
func (p *printer) found(c *cobra.Command, k *admin.Client, found sessions.Found) error {
	if len(found.Hits) == 0 {
		p.line("Nothing that was said has these words.")
		return nil
	}
	ids := make([]string, len(found.Hits))
	for i, h := range found.Hits {
		ids[i] = h.Session
	}
	named, err := admin.Sessions(c.Context(), k, &adminv1.SessionsRequest{Ids: ids})
	if err != nil {
		return err
	}
	places := map[string]string{}
	for _, s := range named {
		places[s.Id] = place(s)
	}
	for i, h := range found.Hits {
		if i > 0 {
			p.line("")
		}
		when, err := time.Parse(time.RFC3339, h.At)
		if err != nil {
			return fmt.Errorf("read the time of row %d of %s: %w", h.Seq, h.Session, err)
		}
		who := h.From
		switch {
		case h.Kind == "answer":
			who = h.Agent
		case who == "":
			who = "you"
		}
		p.faint(fmt.Sprintf("%s  %s  %s  row %d", p.clock(when), h.Session, places[h.Session], h.Seq))
		p.line("%s: %s", p.paint(green, who), p.marked(h))
	}
	if found.Before != "" {
		p.faint(fmt.Sprintf("\nThere are more. Older ones: --before %s", found.Before))
	}
	return nil
}

// marked returns the text of a hit with the words that were searched for in color.
func (p *printer) marked(h sessions.Hit) string {
	var b strings.Builder
	at := 0
	for _, m := range h.Marks {
		if m[0] >= at && m[0] <= m[1] && m[1] <= len(h.Text) {
			b.WriteString(h.Text[at:m[0]])
			b.WriteString(p.paint(yellow, h.Text[m[0]:m[1]]))
			at = m[1]
		}
	}
	b.WriteString(h.Text[at:])
	return b.String()
}
