package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/switchboard-run/switchboard/kernel/control"
)

func newSessionsCommand() *cobra.Command {
	return group("sessions", "Conversations and their histories", newSessionsList(), newSessionsShow(), newSessionsExport(), newSessionsDelete())
}

func newSessionsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the sessions, the most recently active first", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	var q control.SessionQuery
	c.Flags().StringVar(&q.Agent, "agent", "", "only those of one agent")
	c.Flags().IntVarP(&q.Limit, "lines", "n", 50, "how many")
	completeFlag(c, "agent", agentIDs)
	c.RunE = withKernel("listing the sessions", func(c *cobra.Command, k control.Kernel, _ []string) error {
		if q.Limit < 1 {
			return fmt.Errorf("-n %d: give 1 or more", q.Limit)
		}
		all, err := k.Sessions(c.Context(), q)
		if err != nil {
			return err
		}
		return list(c, *asJSON, all, "ID AGENT PLACE STATE ROWS ACTIVE LAST", "There are no sessions yet: `switchboard chat` begins one.",
			func(_ *printer, s control.Session) []cell {
				return []cell{text(s.ID), text(s.Agent), text(place(s)), doing(s), text(fmt.Sprint(s.Rows)), text(age(s.ActiveAt)), text(shorten(s.Last, 60))}
			})
	})
	return c
}

// doing is what a session is doing.
func doing(s control.Session) cell {
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

// place is where a session takes place.
func place(s control.Session) string {
	if s.Group {
		return s.Name + " (group)"
	}
	return cmp.Or(s.Name, s.Key)
}

func newSessionsShow() *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show what was said in a session", Args: cobra.ExactArgs(1), ValidArgsFunction: first(sessionIDs)}
	asJSON := jsonFlag(c)
	n := c.Flags().IntP("lines", "n", 0, "only the newest rows (0: all)")
	c.RunE = withKernel("showing session", func(c *cobra.Command, k control.Kernel, args []string) error {
		if *n < 0 {
			return fmt.Errorf("-n %d: give 0 or more", *n)
		}
		t, err := k.Transcript(c.Context(), args[0])
		if err != nil {
			return err
		}
		if *n > 0 && len(t.Entries) > *n {
			t.Entries = t.Entries[len(t.Entries)-*n:]
		}
		if *asJSON {
			return printJSON(c, t)
		}
		printerOf(c).transcript(t)
		return nil
	})
	return c
}

func (p *printer) transcript(t control.Transcript) {
	p.line("%s  %s  %s", t.ID, t.Agent, place(t.Session))
	about := fmt.Sprintf("%s, begun %s, active %s, %s", doing(t.Session).text, p.clock(t.CreatedAt), p.clock(t.ActiveAt), count(int(t.Rows), "row"))
	if len(t.Memory) > 0 {
		about += ", memory: " + strings.Join(t.Memory, ", ")
	}
	p.faint(about)
	names := map[string]string{}
	for _, e := range t.Entries {
		p.entry(t.Session, e, names)
		for _, call := range e.Calls {
			names[call.ID] = call.Name
		}
	}
}

// entry shows a row; names are the tools of earlier calls.
func (p *printer) entry(s control.Session, e control.Entry, names map[string]string) {
	who, body, c := said(s, e, names)
	p.line("\n%s  %s", p.paint(gray, p.clock(e.At)), p.paint(c, who))
	if body != "" {
		p.body(body, "  ")
	}
	for _, call := range e.Calls {
		text := p.broken("calls "+call.Name+" "+shorten(call.Arguments, 200), "  ")
		p.line("%s", strings.Replace(text, "calls", p.paint(yellow, "calls"), 1))
	}
}

// said is who has what in a row; names are the tools of earlier calls.
func said(s control.Session, e control.Entry, names map[string]string) (who, body string, c paint) {
	switch e.Kind {
	case "input":
		who = e.Sender
		if e.Of == "user" && who == "" {
			who = "you"
		}
		if e.Of != "user" {
			who = strings.TrimSpace(e.Of + " " + who)
		}
		return who, e.Text, green
	case "answer":
		who = s.Agent
		if e.Model != "" {
			who += " (" + e.Model + ")"
		}
		return who, e.Text, plain
	case "result":
		who, c = names[e.CallID], gray
		if who == "" {
			who = "call " + e.CallID
		}
		if e.IsError {
			return who + " failed", e.Text, red
		}
		return who + " answers", shorten(gist(names[e.CallID], e.Text), 400), c
	}
	return e.Kind, e.Text, gray
}

func newSessionsExport() *cobra.Command {
	c := &cobra.Command{
		Use: "export ID", Short: "Write a session as Markdown, or with --json as JSON", Args: cobra.ExactArgs(1), ValidArgsFunction: first(sessionIDs),
		Example: "  switchboard sessions export s1 -o tea.md",
	}
	asJSON := jsonFlag(c)
	file := c.Flags().StringP("output", "o", "", "a file that does not exist yet, instead of the output")
	c.RunE = withKernel("exporting session", func(c *cobra.Command, k control.Kernel, args []string) (err error) {
		t, err := k.Transcript(c.Context(), args[0])
		if err != nil {
			return err
		}
		if *file != "" {
			f, err := os.OpenFile(*file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return fmt.Errorf("writing it: %w", err)
			}
			c.SetOut(f)
			defer f.Close()
		}
		if *asJSON {
			return printJSON(c, t)
		}
		return printerOf(c).markdown(c.OutOrStdout(), t)
	})
	return c
}

func (p *printer) markdown(out io.Writer, t control.Transcript) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "# Session %s\n\n%s, %s, begun %s\n", t.ID, t.Agent, place(t.Session), t.CreatedAt.In(p.zone).Format("2006-01-02 15:04 MST"))
	names := map[string]string{}
	for _, e := range t.Entries {
		who, _, _ := said(t.Session, e, names)
		fmt.Fprintf(w, "\n**%s** · %s\n", who, e.At.In(p.zone).Format("2006-01-02 15:04:05"))
		switch {
		case e.Kind == "result":
			fmt.Fprintf(w, "\n%s\n", fence(e.Text))
		case e.Text != "":
			fmt.Fprintf(w, "\n%s\n", e.Text)
		}
		for _, call := range e.Calls {
			names[call.ID] = call.Name
			fmt.Fprintf(w, "\nCalls `%s`:\n\n%s\n", call.Name, fence(call.Arguments))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing it: %w", err)
	}
	return nil
}

// fence is a code block that its text cannot close.
func fence(s string) string {
	mark := "```"
	for strings.Contains(s, mark) {
		mark += "`"
	}
	return mark + "\n" + strings.TrimRight(s, "\n") + "\n" + mark
}

func newSessionsDelete() *cobra.Command {
	c := &cobra.Command{
		Use: "delete ID", Short: "Delete a session with its history", Args: cobra.ExactArgs(1), ValidArgsFunction: first(sessionIDs),
		Long: "Deletes a session with its whole history, for good. What runs in it is stopped. Its conversation\n" +
			"begins anew with the next message. Reminders that were asked for in it are kept.",
	}
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	c.RunE = withKernel("deleting session", func(c *cobra.Command, k control.Kernel, args []string) error {
		s, err := k.Session(c.Context(), args[0])
		if err != nil {
			return err
		}
		p := printerOf(c)
		if !*yes {
			if f, ok := c.InOrStdin().(*os.File); !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor is an int
				return fmt.Errorf("this cannot be undone: say --yes if it is meant (`switchboard sessions export %s` keeps a copy)", s.ID)
			}
			fmt.Fprintf(p.w, "Delete %s (%s, %s) for good? [y/N] ", s.ID, place(s), count(int(s.Rows), "row"))
			answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
			if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
				p.line("Nothing was deleted.")
				return nil
			}
		}
		if err := k.DeleteSession(c.Context(), s.ID); err != nil {
			return err
		}
		p.line("%s is deleted.", s.ID)
		return nil
	})
	return c
}
