package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newTokensCommand() *cobra.Command {
	return group("tokens", "Tokens of programs that use the API", newTokensCreate(), newTokensList(), newTokensRevoke())
}

func newTokensCreate() *cobra.Command {
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a token for a program", Args: cobra.ExactArgs(1),
		Long: "Makes a token with which a program uses the API of the page's extension, and prints it. It is shown\n" +
			"only now. The program may do what its scopes say, and never more than the person it belongs to:\n\n" +
			"  all, read, or some of admin, channels, events, memory, messages, metrics, people, schedules,\n" +
			"  sessions, tasks, usage\n\n" +
			"With the scope mcp:CLIENT it is that MCP client of mcp.clients in config.yaml, at the path /mcp.",
		Example: "  switchboard tokens create laptop --scope all\n  switchboard tokens create graphs --scope metrics --json",
	}
	scopes := c.Flags().StringSlice("scope", nil, "what it may do; several with commas")
	person := c.Flags().String("person", "", "whom it belongs to: an id or a unique name (default: you)")
	asJSON := jsonFlag(c)
	c.RunE = withWeb("make the token", func(c *cobra.Command, k *admin.Client, args []string) error {
		made, err := callTool[struct {
			Name  string `json:"name"`
			Token string `json:"token"`
			URL   string `json:"url"`
		}](c.Context(), k, webChannel+"/create_token", map[string]any{
			"name": args[0], "person": *person, "scopes": append([]string{}, *scopes...),
		})
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, made)
		}
		p := printerOf(c)
		p.line("%s", made.Token)
		p.faint("It is shown only now. The API is at " + made.URL + ".")
		return nil
	})
	return c
}

// token is one row of the list, also in JSON.
type token struct {
	Name    string    `json:"name"`
	Person  string    `json:"person"`
	Scopes  []string  `json:"scopes"`
	Created time.Time `json:"created"`
}

func newTokensList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the tokens", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = withWeb("list the tokens", func(c *cobra.Command, k *admin.Client, _ []string) error {
		all, err := callTool[struct{ Tokens []token }](c.Context(), k, webChannel+"/list_tokens", map[string]any{})
		if err != nil {
			return err
		}
		return list(c, *asJSON, all.Tokens, "NAME PERSON SCOPES SINCE | SINCE", "There are no tokens.",
			func(_ *printer, t token) []cell {
				return []cell{text(t.Name), text(t.Person), text(strings.Join(t.Scopes, " ")), text(ago(t.Created))}
			})
	})
	return c
}

func newTokensRevoke() *cobra.Command {
	c := &cobra.Command{Use: "revoke NAME", Short: "End a token at once", Args: cobra.ExactArgs(1)}
	c.RunE = withWeb("revoke the token", func(c *cobra.Command, k *admin.Client, args []string) error {
		return runTool(c, k, webChannel+"/revoke_token", map[string]any{"name": args[0]}, false)
	})
	return c
}
