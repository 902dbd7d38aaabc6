package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newUsageCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "usage", Short: "Show what models used, in tokens and money", Args: cobra.NoArgs,
		Long: "Shows what the completions of the last days used, today included. CACHED is the part of INPUT that\n" +
			"providers had in their caches, which usually costs less. COST is by the prices in the configuration and the\n" +
			"known list prices, else what the server reports, in each currency; what has no price isn't in it. Sums by\n" +
			"day, agent, model and person are kept for 400 days, those by session as long as events are. A ~ marks\n" +
			"figures that are partly estimates, because the provider did not report them.",
		Example: "  switchboard usage --days 30 --by model",
	}
	asJSON := jsonFlag(c)
	days := c.Flags().Int("days", 7, "how many days, with today")
	by := c.Flags().String("by", "day", "add up by "+strings.Join(admin.By, ", "))
	completeFlag(c, "by", func(context.Context, *admin.Client) ([]string, error) { return admin.By, nil })
	c.RunE = withKernel("show the usage", func(c *cobra.Command, k *admin.Client, _ []string) error {
		if !slices.Contains(admin.By, *by) {
			return fmt.Errorf("--by %s: give one of %s", *by, strings.Join(admin.By, ", "))
		}
		if *days < 1 {
			return fmt.Errorf("--days %d: give 1 or more", *days)
		}
		rows, err := admin.ReadUsage(c.Context(), k, *by, *days)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(c, rows)
		}
		var sum admin.Usage
		for _, u := range rows {
			sum.Add(u)
		}
		if len(rows) > 1 {
			sum.Name = "total"
			rows = append(rows, sum)
		}
		return list(c, false, rows, strings.ToUpper(*by)+" CALLS INPUT CACHED OUTPUT TOKENS COST | CALLS TOKENS",
			fmt.Sprintf("No model was used in the last %s. The offline model uses no tokens.", count(*days, "day")),
			func(_ *printer, u admin.Usage) []cell {
				mark := ""
				if u.Estimated > 0 {
					mark = "~"
				}
				return []cell{
					text(u.Name), text(humanize.Comma(u.Calls)), text(mark + humanize.Comma(u.Input)), text(humanize.Comma(u.Cached)),
					text(mark + humanize.Comma(u.Output)), text(mark + humanize.Comma(u.Input+u.Output)),
					text(dash(u.Money())),
				}
			})
	})
	return c
}
