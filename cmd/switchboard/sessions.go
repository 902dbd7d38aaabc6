package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newSessionsCommand() *cobra.Command {
	return group("sessions", "Conversations and their histories", newSessionsList(), newSessionsSearch(),
		newSessionsShow(), newSessionsExport(), newSessionsDelete())
}

func newSessionsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the sessions, the most recently active first", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	var q adminv1.SessionsRequest
	c.Flags().StringVar(&q.Agent, "agent", "", "only those of one agent")
	c.Flags().Int32VarP(&q.Limit, "lines", "n", 50, "how many")
	completeFlag(c, "agent", agentIDs)
	c.RunE = withKernel("list the sessions", func(c *cobra.Command, k *admin.Client, _ []string) error {
		if q.Limit < 1 {
			return fmt.Errorf("-n %d: give 1 or more", q.Limit)
		}
		all, err := admin.Sessions(c.Context(), k, &q)
		if err != nil {
			return err
		}
		if err := admin.DescribeSessions(c.Context(), k, all); err != nil {
			return err
		}
		return list(c, *asJSON, all, "ID AGENT PLACE STATE ROWS ACTIVE LAST | ROWS AGENT ACTIVE",
			"There are no sessions yet: `switchboard chat` starts one.",
			func(_ *printer, s admin.NamedSession) []cell {
				return []cell{text(s.Id), text(s.Agent), text(place(s)), doing(s), text(fmt.Sprint(s.Rows)),
					text(age(at(s.ActiveAtUs))), text(shorten(s.Last, 60))}
			})
	})
	return c
}

// doing shows the state of a session.
func doing(s admin.NamedSession) cell {
	c := state(s.State)
	switch {
	case s.Ended && s.State == "idle":
		return state("ended")
	case s.Turns > 1:
		c.text += fmt.Sprintf(", %d interrupted", s.Turns-1)
	case s.Waiting > 0 && s.State == "running":
		c.text += fmt.Sprintf(", %d waiting", s.Waiting)
	}
	return c
}

// place returns the conversation of a session.
func place(s admin.NamedSession) string {
	if s.Group {
		return s.Name + " (group)"
	}
	return cmp.Or(s.Name, s.Key)
}

func newSessionsShow() *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show the history of a session", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(sessionIDs)}
	asJSON := jsonFlag(c)
	n := c.Flags().IntP("lines", "n", 0, "only the newest rows (0: all)")
	c.RunE = withKernel("show session", byName(sessionIDs, 1, func(
		c *cobra.Command, k *admin.Client, args []string,
	) error {
		if *n < 0 {
			return fmt.Errorf("-n %d: give 0 or more", *n)
		}
		t, err := readTranscript(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard sessions list")
		}
		if *n > 0 && len(t.entries) > *n {
			t.entries = t.entries[len(t.entries)-*n:]
		}
		if *asJSON {
			return printJSON(c, t)
		}
		printerOf(c).transcript(t)
		return nil
	}))
	return c
}

// transcript is a session with its history.
type transcript struct {
	admin.NamedSession
	entries []admin.Entry
}

// MarshalJSON implements json.Marshaler.
func (t transcript) MarshalJSON() ([]byte, error) {
	return t.JSON().With("entries", t.entries).MarshalJSON()
}

func readTranscript(ctx context.Context, k *admin.Client, session string) (t transcript, err error) {
	one, err := admin.Session(ctx, k, session)
	if err != nil {
		return t, err
	}
	described := []admin.NamedSession{one}
	if err := admin.DescribeSessions(ctx, k, described); err != nil {
		return t, err
	}
	t.NamedSession = described[0]
	t.entries, err = admin.History(ctx, k, &adminv1.HistoryRequest{Session: session})
	return t, err
}

func (p *printer) transcript(t transcript) {
	p.line("%s  %s  %s", t.Id, t.Agent, place(t.NamedSession))
	about := fmt.Sprintf("%s, begun %s, active %s, %s",
		doing(t.NamedSession).text, p.clock(at(t.CreatedAtUs)), p.clock(at(t.ActiveAtUs)), count(int(t.Rows), "row"))
	if len(t.Memory) > 0 {
		about += ", memory: " + strings.Join(t.Memory, ", ")
	}
	p.faint(about)
	names := map[string]string{}
	for _, e := range t.entries {
		p.entry(t.Session, e, names)
		for _, call := range e.Calls {
			names[call.CallId] = call.Name
		}
	}
}

// entry shows a row; names are the tools of earlier calls.
func (p *printer) entry(s *adminv1.Session, e admin.Entry, names map[string]string) {
	who, body, c := describe(s, e, names)
	p.line("\n%s  %s", p.paint(gray, p.clock(at(e.CreatedAtUs))), p.paint(c, who))
	if body != "" {
		p.body(body, "  ")
	}
	for _, call := range e.Calls {
		text := p.broken("calls "+call.Name+" "+shorten(string(call.Arguments), 200), "  ")
		p.line("%s", strings.Replace(text, "calls", p.paint(yellow, "calls"), 1))
	}
}

// describe returns the author and text of a row; names are the tools of earlier calls.
func describe(s *adminv1.Session, e admin.Entry, names map[string]string) (who, body string, c paint) {
	switch e.Kind {
	case "input":
		who = e.Sender
		if e.InputKind == "user" && who == "" {
			who = "you"
		}
		if e.InputKind != "user" {
			who = strings.TrimSpace(e.InputKind + " " + who)
		}
		return who, e.Text, green
	case "answer":
		who = s.Agent
		if e.Model != "" {
			who += " (" + e.Model + ")"
		}
		return who, e.Text, plain
	case "result":
		who, c = names[e.CallId], gray
		if who == "" {
			who = "call " + e.CallId
		}
		if e.IsError {
			return who + " failed", e.Text, red
		}
		return who + " answers", shorten(gist(names[e.CallId], e.Text), 400), c
	}
	return e.Kind, e.Text, gray
}

func newSessionsExport() *cobra.Command {
	c := &cobra.Command{
		Use: "export ID", Short: "Write a session as Markdown, or with --json as JSON", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(sessionIDs),
		Example:           "  switchboard sessions export s1 -o tea.md",
	}
	asJSON := jsonFlag(c)
	file := c.Flags().StringP("output", "o", "", "write to a new file")
	c.RunE = withKernel("export session", byName(sessionIDs, 1, func(
		c *cobra.Command, k *admin.Client, args []string,
	) (err error) {
		t, err := readTranscript(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard sessions list")
		}
		if *file != "" {
			f, err := os.OpenFile(*file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return fmt.Errorf("write the session: %w", err)
			}
			c.SetOut(f)
			defer f.Close()
		}
		if *asJSON {
			return printJSON(c, t)
		}
		p := printerOf(c)
		if p.width > 0 {
			return p.markdown(p.w, t)
		}
		return p.markdown(c.OutOrStdout(), t) // as it was said
	}))
	return c
}

func (p *printer) markdown(out io.Writer, t transcript) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "# Session %s\n\n%s, %s, begun %s\n", t.Id, t.Agent, place(t.NamedSession),
		at(t.CreatedAtUs).In(p.zone).Format("2006-01-02 15:04 MST"))
	names := map[string]string{}
	for _, e := range t.entries {
		who, _, _ := describe(t.Session, e, names)
		fmt.Fprintf(w, "\n**%s** · %s\n", who, at(e.CreatedAtUs).In(p.zone).Format("2006-01-02 15:04:05"))
		switch {
		case e.Kind == "result":
			fmt.Fprintf(w, "\n%s\n", fence(e.Text))
		case e.Text != "":
			fmt.Fprintf(w, "\n%s\n", e.Text)
		}
		for _, call := range e.Calls {
			names[call.CallId] = call.Name
			fmt.Fprintf(w, "\nCalls `%s`:\n\n%s\n", call.Name, fence(string(call.Arguments)))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the session: %w", err)
	}
	return nil
}

// fence makes a code block that its text cannot close.
func fence(s string) string {
	mark := "```"
	for strings.Contains(s, mark) {
		mark += "`"
	}
	return mark + "\n" + strings.TrimRight(s, "\n") + "\n" + mark
}

func newSessionsDelete() *cobra.Command {
	c := &cobra.Command{
		Use: "delete ID", Short: "Delete a session with its history", Args: cobra.ExactArgs(1),
		ValidArgsFunction: first(sessionIDs),
		Long: "Deletes a session with its whole history, for good, and stops a running turn. Its conversation starts\n" +
			"over with the next message. Reminders that were set in it are kept.",
	}
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	c.RunE = withKernel("delete session", byName(sessionIDs, 1, func(
		c *cobra.Command, k *admin.Client, args []string,
	) error {
		s, err := admin.Session(c.Context(), k, args[0])
		if err != nil {
			return hinted(err, "switchboard sessions list")
		}
		p := printerOf(c)
		if !*yes {
			if f, ok := c.InOrStdin().(*os.File); !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor is an int
				return fmt.Errorf(
					"this can't be undone; add --yes to confirm (`switchboard sessions export %s` keeps a copy)", s.Id)
			}
			fmt.Fprintf(p.w, "Delete %s (%s, %s) for good? [y/N] ", s.Id, place(s), count(int(s.Rows), "row"))
			answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
			if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
				p.line("Nothing was deleted.")
				return nil
			}
		}
		if _, err := k.DeleteSession(c.Context(), &adminv1.DeleteSessionRequest{Id: s.Id}); err != nil {
			return err
		}
		p.line("%s is deleted.", s.Id)
		return nil
	}))
	return c
}
