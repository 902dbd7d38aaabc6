package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// webChannel is the id of the extension that serves the page and the API.
const webChannel = "web_channel"

func newWebCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "web", Short: "Open the page in a browser", Args: cobra.NoArgs,
		Long: "Prints a link that logs one browser in, once, within ten minutes, and opens it. The first time it\n" +
			"enables the extension that serves the page.",
		Example: "  switchboard web\n  switchboard web --no-open --person Clara",
	}
	c.AddCommand(newWebLogins(), newWebLogout())
	noOpen := c.Flags().Bool("no-open", false, "only print the link")
	person := c.Flags().String("person", "", "whose page it is: an id or a unique name (default: yours)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return withWeb("open the page", func(c *cobra.Command, k *admin.Client, _ []string) error {
			link, err := callTool[struct{ URL string }](c.Context(), k, webChannel+"/link", map[string]any{"person": *person})
			if err != nil {
				return err
			}
			p := printerOf(c)
			p.line("%s", link.URL)
			p.faint("It opens the page once, within ten minutes.")
			if !*noOpen {
				openBrowser(c.Context(), link.URL)
			}
			return nil
		})(c, nil)
	}
	return c
}

// withWeb is withKernel for commands that need the page's extension: they enable it unless
// config.yaml has it, and explain why it doesn't answer.
func withWeb(
	action string, f func(c *cobra.Command, k *admin.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return withKernel(action, func(c *cobra.Command, k *admin.Client, args []string) error {
		p := printerOf(c)
		p.w = safeText{c.ErrOrStderr(), false} // standard output is the command's, perhaps JSON
		x := &installation{c: c, p: p, kernel: k}
		if err := x.open(); err != nil {
			return err
		}
		known, err := home.Find(x.options, webChannel)
		if err == nil && !known.Enabled {
			err = x.enable(webChannel, true)
		}
		if err != nil {
			return err
		}
		if err = f(c, k, args); err == nil {
			return nil
		}
		if row := x.row(c.Context(), webChannel); row != nil && row.GetState() != "active" {
			return fmt.Errorf("the extension %s is %s: %s", webChannel, row.GetState(),
				cmp.Or(row.GetLastError(), row.GetDetail(), row.GetProblem(), "see `switchboard logs "+webChannel+"`"))
		}
		return err
	})
}

func newWebLogins() *cobra.Command {
	c := &cobra.Command{Use: "logins", Short: "List the browsers that are logged in", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = withWeb("list the logins", func(c *cobra.Command, k *admin.Client, _ []string) error {
		type login struct {
			ID      string    `json:"id"`
			Browser string    `json:"browser"`
			Began   time.Time `json:"began"`
			Seen    time.Time `json:"seen"`
			Account struct {
				User string `json:"user"`
			} `json:"account"`
		}
		all, err := callTool[struct{ Logins []login }](c.Context(), k, webChannel+"/list_logins", map[string]any{})
		if err != nil {
			return err
		}
		return list(c, *asJSON, all.Logins, "ID PERSON SINCE LAST_VISIT BROWSER | BROWSER", "No browser is logged in.",
			func(_ *printer, l login) []cell {
				return []cell{text(l.ID), text(l.Account.User), text(ago(l.Began)), text(ago(l.Seen)), text(dash(l.Browser))}
			})
	})
	return c
}

func newWebLogout() *cobra.Command {
	c := &cobra.Command{Use: "logout ID", Short: "End a login at once", Args: cobra.ExactArgs(1)}
	c.RunE = withWeb("end the login", func(c *cobra.Command, k *admin.Client, args []string) error {
		return runTool(c, k, webChannel+"/end_login", map[string]any{"id": args[0]}, false)
	})
	return c
}
