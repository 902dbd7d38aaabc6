package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/store/postgres"
)

func newCellsCommand() *cobra.Command {
	return group("cells", "Households of a cluster: each apart from the others", newCellsCreate(), newCellsList(),
		newCellsShow(), newMove(), newCellsDelete())
}

func newCellsCreate() *cobra.Command {
	var node string
	c := &cobra.Command{
		Use: "create NAME", Short: "Make a cell", Args: cobra.ExactArgs(1),
		Long: "Makes a cell: a household with a state, configuration, secrets, people and extensions of its own. Each\n" +
			"node keeps its home at cells/NAME in its own home, and --cell NAME leads any command to it.",
		Example: "  switchboard cells create flat\n  switchboard --cell flat status",
	}
	asJSON := jsonFlag(c)
	c.Flags().StringVar(&node, "node", "", "the node that is to own it (default: this machine's)")
	c.RunE = func(c *cobra.Command, args []string) error {
		name := args[0]
		if err := config.CellName(name); err != nil {
			return fmt.Errorf("create a cell: %w", err)
		}
		d, o, h, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("create the cell %s: %w", name, err)
		}
		defer d.Close()
		v, err := d.Look(c.Context())
		if err == nil && seenCell(v, name) != nil {
			err = errors.New("there is one with this name")
		}
		if node == "" {
			node = o.Name
		} else if err == nil && !slices.ContainsFunc(v.Members, func(m postgres.Member) bool { return m.Name == node }) {
			err = fmt.Errorf("%w: %s; `switchboard cluster status` lists them", postgres.ErrNoNode, node)
		}
		if err == nil {
			if _, err := d.Create(c.Context(), name); err != nil {
				return err
			}
			err = d.Want(c.Context(), name, node)
		}
		owner := ""
		if err == nil {
			err = awaitView(c.Context(), d, func(v postgres.View) string {
				if s := seenCell(v, name); s != nil && s.Node != "" {
					owner = s.Node
					return ""
				}
				return "it is made, but no node has taken it"
			})
		}
		if err != nil {
			return fmt.Errorf("create the cell %s: %w", name, err)
		}
		path := h.Cell(name)
		if err := awaitCell(c.Context(), path); err != nil {
			return fmt.Errorf("create the cell %s: the node %s has it, and its kernel does not answer yet: %w", name, owner, err)
		}
		if *asJSON {
			return printJSON(c, map[string]string{"name": name, "owner": owner, "home": path})
		}
		p := printerOf(c)
		p.line("The cell %s runs on the node %s. Its home is %s.", name, owner, path)
		p.faint(fmt.Sprintf("`switchboard --cell %s setup` connects a model and channels.", name))
		return nil
	}
	return c
}

// awaitCell waits until the kernel of a home answers.
func awaitCell(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, retireTime)
	defer cancel()
	for {
		h, err := config.FindHome(func(name string) (string, bool) { return path, name == config.HomeEnv })
		if err == nil {
			var k *admin.Client
			if k, err = dial(ctx, h); err == nil {
				_, err = k.Status(ctx, &adminv1.StatusRequest{})
				k.Close()
			}
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func newCellsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the cells", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, _, _, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("list the cells: %w", err)
		}
		defer d.Close()
		r, err := readCluster(c.Context(), d)
		if err != nil {
			return fmt.Errorf("list the cells: %w", err)
		}
		if *asJSON {
			return printJSON(c, asJSONList(r.Cells))
		}
		printerOf(c).clusterCells(r.Cells)
		return nil
	}
	return c
}

func newCellsShow() *cobra.Command {
	c := &cobra.Command{Use: "show NAME", Short: "Show a cell and its copies", Args: cobra.ExactArgs(1)}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		d, o, h, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("show the cell %s: %w", args[0], err)
		}
		defer d.Close()
		r, err := readCluster(c.Context(), d)
		if err != nil {
			return fmt.Errorf("show the cell %s: %w", args[0], err)
		}
		x := r.of(args[0])
		if x == nil {
			return fmt.Errorf("show the cell %s: %w; `switchboard cells list` lists them", args[0], postgres.ErrNoCell)
		}
		if *asJSON {
			return printJSON(c, x)
		}
		p := printerOf(c)
		p.clusterCells([]*clusterCell{x})
		p.line("")
		rows := make([][]cell, len(x.Nodes))
		for i, n := range x.Nodes {
			rows[i] = []cell{text(n.Node), state(n.Role), text(fmt.Sprint(n.Lag)), text(n.Problem)}
		}
		p.table("NODE ROLE ENTRIES_BEHIND PROBLEM", rows)
		path := h.Path()
		if x.Name != o.Cell {
			path = h.Cell(x.Name)
		}
		p.line("Its home on this machine is %s.", path)
		return nil
	}
	return c
}

// retireTime is what all nodes have to see that a cell is being deleted, and its owner to
// stop it.
const retireTime = 30 * time.Second

func newCellsDelete() *cobra.Command {
	c := &cobra.Command{
		Use: "delete NAME", Short: "Delete a cell with all that it has", Args: cobra.ExactArgs(1),
		Long: "Stops a cell and deletes its state, files and snapshots from PostgreSQL, and its home, with configuration\n" +
			"and secrets, from all nodes that run. This cannot be taken back.",
	}
	yes := c.Flags().BoolP("yes", "y", false, "do not ask")
	c.RunE = func(c *cobra.Command, args []string) error {
		name := args[0]
		d, o, _, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("delete the cell %s: %w", name, err)
		}
		defer d.Close()
		v, err := d.Look(c.Context())
		if err != nil {
			return fmt.Errorf("delete the cell %s: %w", name, err)
		}
		s := seenCell(v, name)
		switch {
		case s == nil:
			return fmt.Errorf("delete the cell %s: %w; `switchboard cells list` lists them", name, postgres.ErrNoCell)
		case name == o.Cell:
			return fmt.Errorf("delete the cell %s: it is the own cell of this node; `switchboard cluster leave` takes the node "+
				"out of the cluster", name)
		}
		if ok, err := confirm(c, *yes, "Delete the cell "+name+" with all its conversations, files and settings for good?",
			"`switchboard --cell "+name+" backup create` keeps a copy"); err != nil || !ok {
			return err
		}
		if err := d.Retire(c.Context(), name); err != nil {
			return err
		}
		began := time.Now()
		err = awaitView(c.Context(), d, func(v postgres.View) string {
			now := seenCell(v, name)
			if now == nil || time.Since(began) > retireTime || now.Node == "" && time.Since(began) > time.Second {
				return ""
			}
			return "the cell still runs"
		})
		if err == nil {
			err = d.Erase(c.Context(), *s)
		}
		if err != nil {
			return err
		}
		printerOf(c).line("The cell %s is deleted.", name)
		return nil
	}
	return c
}

// leadToCell makes commands work on the home of a cell.
func leadToCell(name string) error {
	h, err := config.FindHome(os.LookupEnv)
	if err != nil {
		return err
	}
	if node := h.Node(); node != "" && name != filepath.Base(h.Path()) {
		return fmt.Errorf("%s is the home of one cell: to work on the cell %q, set %s to that of the node, %s", h.Path(),
			name, config.HomeEnv, node)
	} else if node != "" {
		return nil
	}
	settings, err := config.LoadCluster(h.ClusterFile())
	if err != nil {
		return err
	}
	if name == settings.Cell {
		return nil
	}
	path := h.Cell(name)
	if _, err := os.Stat(path); err != nil || config.CellName(name) != nil {
		return fmt.Errorf("there is no cell %q on this machine: `switchboard cells list` lists those of the cluster", name)
	}
	return os.Setenv(config.HomeEnv, path)
}
