package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home/cluster"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/store/postgres"
)

// clusterNode is one node, also in JSON.
type clusterNode struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	State    string `json:"state"` // running, stopping, draining, stopped or silent
	Lease    bool   `json:"lease"` // it was renewed just now
	Draining bool   `json:"draining"`
	Cells    int    `json:"cells"` // that it owns
	reports  map[string]cluster.Standing
}

// clusterCell is one cell, also in JSON.
type clusterCell struct {
	Name     string       `json:"name"`
	Owner    string       `json:"owner,omitempty"`
	Epoch    int64        `json:"epoch"`
	Position int64        `json:"position"` // of the newest entry of its log
	Schema   int          `json:"schema"`
	First    int64        `json:"first"` // the oldest entry of its log
	Snapshot int64        `json:"snapshot,omitempty"`
	Wanted   string       `json:"wanted,omitempty"` // the node that is to own it
	Deleting bool         `json:"deleting,omitempty"`
	Ended    string       `json:"ended,omitempty"`
	Nodes    []cellOnNode `json:"nodes"`
	// Pinned names the node that it stays on; nil: any node takes it over.
	Pinned  *cluster.Pin `json:"pinned,omitempty"`
	figures cluster.Standing
	seen    postgres.Seen
}

// cellOnNode is what a node reports of a cell, at most some seconds ago.
type cellOnNode struct {
	Node string `json:"node"`
	Lag  int64  `json:"lag"` // entries that its copy does not have yet
	cluster.Standing
}

// clusterReport is the state of a cluster.
type clusterReport struct {
	Server postgres.Server `json:"server"`
	Nodes  []*clusterNode  `json:"nodes"`
	Cells  []*clusterCell  `json:"cells"`
	// Differences are those of secrets, programs and keys between nodes.
	Differences []cluster.Difference `json:"differences,omitempty"`
}

// openCluster connects to the database of the cluster. It works while no node runs.
func openCluster(ctx context.Context) (*postgres.Database, cluster.Options, *config.Home, error) {
	h, err := config.FindHome(os.LookupEnv)
	if err != nil {
		return nil, cluster.Options{}, nil, err
	}
	o, err := clusterOptions(h)
	if err != nil {
		return nil, o, nil, err
	}
	d, err := postgres.Open(ctx, postgres.Options{DSN: o.DSN, Name: "command on " + o.Name})
	return d, o, h, err
}

// leaseSeen is the time between two looks at the leases: more than that between renewals.
const leaseSeen = 800 * time.Millisecond

// readCluster reads the state of the cluster. It takes a moment, as leases are watched.
func readCluster(ctx context.Context, d *postgres.Database) (*clusterReport, error) {
	before, err := d.Look(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(leaseSeen):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v, err := d.Look(ctx)
	if err != nil {
		return nil, err
	}
	server, err := d.Server(ctx)
	if err != nil {
		return nil, err
	}
	running, err := d.Connected(ctx)
	if err != nil {
		return nil, err
	}
	holds, beats := map[string]bool{}, map[int64]int64{}
	for _, name := range running {
		holds[name] = true
	}
	for _, m := range before.Members {
		beats[m.ID] = m.Beat
	}
	r := &clusterReport{Server: server}
	for _, m := range v.Members {
		beat, known := beats[m.ID]
		n := &clusterNode{Name: m.Name, Version: m.Version, State: m.State, Lease: known && beat != m.Beat,
			Draining: m.Draining, reports: map[string]cluster.Standing{}}
		switch {
		case !holds[m.Name] && !n.Lease:
			n.State = "stopped"
		case !n.Lease:
			n.State = "silent"
		case m.Draining:
			n.State = "draining"
		}
		_ = json.Unmarshal([]byte(m.Report), &n.reports)
		r.Nodes = append(r.Nodes, n)
	}
	told, err := d.Told(ctx)
	if err != nil {
		return nil, err
	}
	pins := cluster.Pins(told, v.Cells)
	for _, c := range v.Cells {
		x := r.cell(c)
		if p, pinned := pins[c.Name]; pinned {
			x.Pinned = &p
		}
		r.Cells = append(r.Cells, x)
	}
	return r, nil
}

// cell describes a cell by what the nodes report.
func (r *clusterReport) cell(c postgres.Seen) *clusterCell {
	x := &clusterCell{
		Name: c.Name, Owner: c.Node, Epoch: c.Epoch, Position: c.Head, Schema: c.Schema, First: c.First, Wanted: c.Wanted,
		Deleting: c.Gone, Ended: c.Ended, seen: c, Nodes: []cellOnNode{},
	}
	if c.Snapshot != nil {
		x.Snapshot = c.Snapshot.Head
	}
	for _, n := range r.Nodes {
		s, reports := n.reports[c.Name]
		if n.Name == c.Node {
			n.Cells++
			x.figures = s
		}
		if reports && n.State != "stopped" {
			x.Nodes = append(x.Nodes, cellOnNode{Node: n.Name, Lag: max(0, c.Head-s.Position), Standing: s})
		}
	}
	return x
}

// of returns a cell; nil: there is none with the name.
func (r *clusterReport) of(name string) *clusterCell {
	for _, c := range r.Cells {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (r *clusterReport) node(name string) *clusterNode {
	for _, n := range r.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// waits reports whether a cell has no owner because the node with its data is gone.
func (r *clusterReport) waits(c *clusterCell) bool {
	if c.Pinned == nil {
		return false
	}
	owner, holder := r.node(c.Owner), r.node(c.Pinned.Node)
	return (owner == nil || !owner.Lease) && (holder == nil || !holder.Lease)
}

func newClusterStatus() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show the nodes and cells of the cluster", Args: cobra.NoArgs,
		Long: "Shows the nodes with their leases, and the cells with owners, standbys and figures. It reads PostgreSQL,\n" +
			"so it works on each machine, also while a node hangs. What nodes report of cells is up to three seconds old.",
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, o, _, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("read the state of the cluster: %w", err)
		}
		defer d.Close()
		r, err := readCluster(c.Context(), d)
		if err != nil {
			return fmt.Errorf("read the state of the cluster: %w", err)
		}
		if r.Differences, err = differences(c.Context(), d); err != nil {
			return fmt.Errorf("read the state of the cluster: %w", err)
		}
		if *asJSON {
			return printJSON(c, r)
		}
		printerOf(c).cluster(r, o.Name)
		return nil
	}
	return c
}

func (p *printer) cluster(r *clusterReport, self string) {
	standby := "commits wait for no standby"
	if r.Server.Standbys != "" {
		standby = fmt.Sprintf("commits wait for %s, %d connected", r.Server.Standbys, r.Server.Synchronous)
	}
	p.line("PostgreSQL %s: %s", r.Server.Version, standby)
	p.line("")
	rows := make([][]cell, len(r.Nodes))
	for i, n := range r.Nodes {
		name, lease := n.Name, "renewed"
		if name == self {
			name += " (this one)"
		}
		if !n.Lease {
			lease = "not renewed"
		}
		rows[i] = []cell{text(name), state(n.State), text(lease), text(n.Version), text(fmt.Sprint(n.Cells))}
	}
	p.table("NODE STATE LEASE VERSION CELLS", rows)
	p.line("")
	p.clusterCells(r.Cells)
	for _, c := range r.Cells {
		for _, n := range c.Nodes {
			if n.Problem != "" {
				p.line("%s", p.paint(red, fmt.Sprintf("%s on %s: %s", c.Name, n.Node, n.Problem)))
			}
		}
	}
	for _, c := range r.Cells {
		if r.waits(c) {
			p.line("%s", p.paint(red, fmt.Sprintf("%s has no owner, because %s", c.Name, c.Pinned.Waiting(c.Name))))
		}
	}
	for _, x := range r.Differences {
		p.line("%s", p.paint(yellow, x.String()))
	}
}

func (p *printer) clusterCells(all []*clusterCell) {
	rows := make([][]cell, len(all))
	for i, c := range all {
		var standbys, detail []string
		for _, n := range c.Nodes {
			if n.Node == c.Owner {
				continue
			}
			s := n.Node
			if n.Role == "ready" {
				s += " (ready)"
			}
			if n.Lag > 0 {
				s += fmt.Sprintf(" %d behind", n.Lag)
			}
			standbys = append(standbys, s)
		}
		switch {
		case c.Deleting:
			detail = append(detail, "is being deleted")
		case postgres.ReservedBy(c.Ended) != "":
			detail = append(detail, "waits for the state of the node "+postgres.ReservedBy(c.Ended))
		case c.Ended != "":
			detail = append(detail, "has left the cluster: "+c.Ended)
		case c.Wanted != "" && c.Wanted != c.Owner:
			detail = append(detail, "moves to "+c.Wanted)
		}
		if c.Pinned != nil {
			detail = append(detail, "stays on "+c.Pinned.Node+" for the data of "+strings.Join(c.Pinned.Extensions, ", "))
		}
		if c.figures.Standby > 0 {
			detail = append(detail, fmt.Sprintf("waited %d s for a standby", c.figures.Standby))
		}
		if c.figures.Unknown > 0 {
			detail = append(detail, fmt.Sprintf("%d unknown outcomes, resolved", c.figures.Unknown))
		}
		rows[i] = []cell{text(c.Name), text(dash(c.Owner)), text(fmt.Sprint(c.Epoch)), text(fmt.Sprint(c.Position)),
			text(dash(strings.Join(standbys, ", "))), text(micros(c.figures.P99Micros)), text(strings.Join(detail, "; "))}
	}
	p.table("CELL OWNER EPOCH ENTRIES STANDBYS APPEND_P99 DETAIL | APPEND_P99 ENTRIES EPOCH", rows)
}

func micros(us int64) string {
	if us == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", float64(us)/1000)
}

// moveTime bounds the wait for a cell or a node to be where it is to be.
const moveTime = 2 * time.Minute

// awaitView looks at the cluster until done, which returns what is still awaited; empty: it is
// done.
func awaitView(ctx context.Context, d *postgres.Database, done func(postgres.View) string) error {
	ctx, cancel := context.WithTimeout(ctx, moveTime)
	defer cancel()
	for {
		v, err := d.Look(ctx)
		if err != nil {
			return err
		}
		awaited := done(v)
		if awaited == "" {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errors.New(awaited + "; the order stands, and `switchboard cluster status` shows how it goes")
			}
			return ctx.Err()
		}
	}
}

func seenCell(v postgres.View, name string) *postgres.Seen {
	for i := range v.Cells {
		if v.Cells[i].Name == name {
			return &v.Cells[i]
		}
	}
	return nil
}

func newClusterDrain() *cobra.Command {
	var node string
	var undo bool
	c := &cobra.Command{
		Use: "drain", Short: "Hand all cells of a node over to the others", Args: cobra.NoArgs,
		Long: "Makes a node hand its cells over to the others, a few at a time, each when the next owner has the\n" +
			"extensions ready. It takes none until --undo, unless no other node is left.",
	}
	c.Flags().StringVar(&node, "node", "", "the node (default: this machine's)")
	c.Flags().BoolVar(&undo, "undo", false, "let it take cells again")
	c.RunE = func(c *cobra.Command, _ []string) error {
		d, o, _, err := openCluster(c.Context())
		if err != nil {
			return fmt.Errorf("drain a node: %w", err)
		}
		defer d.Close()
		if node == "" {
			node = o.Name
		}
		var staying []string // cells with data that only this node has
		if !undo {
			r, err := readCluster(c.Context(), d)
			if err != nil {
				return fmt.Errorf("drain the node %s: %w", node, err)
			}
			able := 0
			for _, n := range r.Nodes {
				if n.Name != node && n.State == "running" {
					able++
				}
			}
			if x := r.node(node); x != nil && x.Cells > 0 && able == 0 {
				return fmt.Errorf("drain the node %s: no other node runs that could take its %s", node, count(x.Cells, "cell"))
			}
			for _, x := range r.Cells {
				if x.Owner == node && x.Pinned != nil && x.Pinned.Node == node {
					staying = append(staying, x.Name)
				}
			}
		}
		if err := d.Drain(c.Context(), node, !undo); err != nil {
			return err
		}
		p := printerOf(c)
		if undo {
			p.line("The node %s takes cells again.", node)
			return nil
		}
		err = awaitView(c.Context(), d, func(v postgres.View) string {
			left := 0
			for _, x := range v.Cells {
				if x.Node == node && !slices.Contains(staying, x.Name) {
					left++
				}
			}
			if left == 0 {
				return ""
			}
			return fmt.Sprintf("the node %s still has %s", node, count(left, "cell"))
		})
		if err != nil {
			return fmt.Errorf("drain the node %s: %w", node, err)
		}
		has := "has no cells and"
		if len(staying) > 0 {
			has = "keeps " + strings.Join(staying, ", ") + ", whose data no other node has, and otherwise"
		}
		p.line("The node %s %s takes none. `switchboard cluster drain --undo` ends that.", node, has)
		return nil
	}
	return c
}

// newMove is `cluster move` and `cells move`.
func newMove() *cobra.Command {
	c := &cobra.Command{
		Use: "move CELL NODE", Short: "Hand a cell over to another node", Args: cobra.ExactArgs(2),
		Long: "Hands a cell over when the other node has its extensions ready: messages wait meanwhile, and none is lost.\n" +
			"The data directories of extensions are not moved: if one is pinned, this is refused without --yes.",
	}
	yes := c.Flags().BoolP("yes", "y", false, "also if data of extensions stays behind")
	c.RunE = func(c *cobra.Command, args []string) error {
		var said string
		d, _, _, err := openCluster(c.Context())
		if err == nil {
			defer d.Close()
			said, err = moveCell(c.Context(), d, args[0], args[1], *yes)
		}
		if err != nil {
			return fmt.Errorf("move the cell %s: %w", args[0], err)
		}
		printerOf(c).line("%s", said)
		return nil
	}
	return c
}

// moveCell hands a cell over and says so.
func moveCell(ctx context.Context, d *postgres.Database, name, node string, sure bool) (said string, err error) {
	r, err := readCluster(ctx, d)
	if err != nil {
		return "", err
	}
	x, to := r.of(name), r.node(node)
	switch {
	case x == nil:
		return "", fmt.Errorf("%w; `switchboard cells list` lists them", postgres.ErrNoCell)
	case to == nil:
		return "", fmt.Errorf("%w: %s; `switchboard cluster status` lists them", postgres.ErrNoNode, node)
	case !to.Lease || to.Draining:
		return "", fmt.Errorf("the node %s is %s, so it takes no cells", node, to.State)
	case x.Owner == node:
		if x.Wanted != "" {
			if err := d.Want(ctx, name, ""); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("The node %s has the cell %s already.", node, name), nil
	case x.Pinned != nil && x.Pinned.Node != node && !sure:
		return "", fmt.Errorf("%s: to take that along, disable the extensions, copy their directories in data/ to %s, move "+
			"the cell, and enable them again; to go on without the data, add --yes", x.Pinned, node)
	}
	if err := d.Want(ctx, name, node); err != nil {
		return "", err
	}
	began := time.Now()
	err = awaitView(ctx, d, func(v postgres.View) string {
		if s := seenCell(v, name); s != nil && s.Node != node {
			return fmt.Sprintf("the node %s has not taken it yet", node)
		}
		return ""
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("The node %s has the cell %s, after %s.", node, name, time.Since(began).Round(10*time.Millisecond)),
		nil
}
