package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/cluster"
)

// transfer is one hand-over, also in JSON.
type transfer struct {
	Cell string `json:"cell"`
	From string `json:"from"`
	To   string `json:"to"`
}

func newClusterBalance() *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "balance", Short: "Spread the cells evenly over the nodes", Args: cobra.NoArgs,
		Long: "Hands cells over, one after the other, from nodes with more to nodes with fewer, until they differ by\n" +
			"one at most; for example after a node came back. A cell stays where its data is pinned, and goes to no\n" +
			"node that lacks its secrets or programs. Messages wait during a hand-over, and none is lost.",
	}
	asJSON := jsonFlag(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would move")
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, _, _, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("balance the cluster: %w", err)
		}
		defer d.Close()
		r, err := readCluster(c.Context(), d)
		if err == nil {
			r.Differences, err = differences(c.Context(), d)
		}
		if err != nil {
			return fmt.Errorf("balance the cluster: %w", err)
		}
		all := balanced(r)
		p := printerOf(c)
		if len(all) == 0 && !*asJSON {
			p.line("No cell has to move.")
		}
		for _, t := range all {
			said := fmt.Sprintf("%s would move from %s to %s.", t.Cell, t.From, t.To)
			if !dry {
				if said, err = moveCell(c.Context(), d, t.Cell, t.To, false); err != nil {
					return fmt.Errorf("balance the cluster: move the cell %s from %s to %s: %w", t.Cell, t.From, t.To, err)
				}
			}
			if !*asJSON {
				p.line("%s", said)
			}
		}
		if *asJSON {
			return printJSON(c, asJSONList(all))
		}
		return nil
	}
	return c
}

// balanced returns the hand-overs after which the nodes that run have the same number of
// cells, or one more than others, as far as cells may move. No cell moves twice.
func balanced(r *clusterReport) (all []transfer) {
	var nodes []string
	cells := map[string][]*clusterCell{} // of each node
	for _, n := range r.Nodes {
		if n.State == "running" && n.Lease {
			nodes = append(nodes, n.Name)
		}
	}
	for _, c := range r.Cells {
		cells[c.Owner] = append(cells[c.Owner], c)
	}
	for {
		from, to, moves := "", "", (*clusterCell)(nil)
		for _, source := range nodes {
			for _, target := range nodes {
				gain := len(cells[source]) - len(cells[target])
				if gain < 2 || gain <= len(cells[from])-len(cells[to]) && moves != nil {
					continue
				}
				if x := movable(r, cells[source], target); x != nil {
					from, to, moves = source, target, x
				}
			}
		}
		if moves == nil {
			return all
		}
		all = append(all, transfer{moves.Name, from, to})
		cells[from] = slices.DeleteFunc(cells[from], func(c *clusterCell) bool { return c == moves })
		moved := *moves
		moved.Wanted = to // it is one that moves already
		cells[to] = append(cells[to], &moved)
	}
}

// movable returns the cell that a node takes over best, nil: it can take none. Best is one
// that has its home there, and then one whose extensions it holds ready.
func movable(r *clusterReport, cells []*clusterCell, to string) *clusterCell {
	able := slices.DeleteFunc(slices.Clone(cells), func(c *clusterCell) bool {
		lacks := func(d cluster.Difference) bool {
			return d.Node == to && (d.What == cluster.KeyDiffers || d.Cell == c.Name &&
				(d.What == cluster.SecretsMissing || d.What == cluster.ProgramsForbidden))
		}
		return c.Wanted != "" || c.Deleting || c.Ended != "" || c.Pinned != nil && c.Pinned.Node != to ||
			c.on(to).Role == "failed" || slices.ContainsFunc(r.Differences, lacks)
	})
	if len(able) == 0 {
		return nil
	}
	return slices.MinFunc(able, func(a, b *clusterCell) int {
		return cmp.Or(cmp.Compare(a.effort(to), b.effort(to)), cmp.Compare(a.Name, b.Name))
	})
}

// effort is less for cells that belong to a node more than to their owner, and for those
// whose extensions it holds ready.
func (c *clusterCell) effort(to string) (e int) {
	if c.on(to).Own {
		e -= 2
	}
	if c.on(c.Owner).Own {
		e += 2
	}
	if c.on(to).Role == "ready" {
		e--
	}
	return e
}

// on returns what a node reports of the cell.
func (c *clusterCell) on(node string) cluster.Standing {
	for _, n := range c.Nodes {
		if n.Node == node {
			return n.Standing
		}
	}
	return cluster.Standing{}
}
