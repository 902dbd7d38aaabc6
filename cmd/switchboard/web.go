package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

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
		home, err := openHome()
		if err != nil {
			return err
		}
		x := &installation{c: c, p: printerOf(c), home: home, kernel: k}
		known, err := x.find(webChannel)
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
