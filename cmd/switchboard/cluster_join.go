package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/cluster"
	"github.com/switchboard-run/switchboard/home/config"
)

func newClusterCommand() *cobra.Command {
	return group("cluster", "Share the state with other machines, over PostgreSQL", newClusterStatus(), newClusterDrain(),
		newClusterBalance(), newMove(), newClusterJoin(), newClusterLeave(), newClusterRestore(), newClusterKey(),
		newClusterAllow())
}

func newClusterJoin() *cobra.Command {
	seat := seatFlags{joins: true}
	c := &cobra.Command{
		Use: "join", Short: "Bring this home into a cluster", Args: cobra.NoArgs,
		Long: "Makes this home a node of a cluster. If the cell has no state yet, the state of this home becomes that of\n" +
			"the cell: it is moved to PostgreSQL with the files of messages, read back and compared, and the home's own\n" +
			"store is kept under another name. Otherwise only the configuration is written.\n" +
			"Stop the kernel first. If this is interrupted, run it again.",
		Example: "  switchboard cluster join --dsn-file ~/switchboard.dsn --node kitchen --listen kitchen.lan:7718",
	}
	asJSON := jsonFlag(c)
	seat.add(c)
	c.Flags().StringVar(&seat.node, "node", "", "name of this machine in the cluster (its host name)")
	c.Flags().StringVar(&seat.listen, "listen", "", "where the other machines reach this one, such as kitchen.lan:7718")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := seat.open(c, *asJSON)
		if err != nil {
			return err
		}
		var done cluster.Joined
		err = moving(s.Home, func() error {
			done, err = cluster.Join(c.Context(), s)
			return err
		})
		switch {
		case err != nil && c.Context().Err() != nil:
			return errors.New("interrupted: run it again to go on")
		case err != nil:
			return err
		case *asJSON:
			return printJSON(c, struct {
				Cell  string   `json:"cell"`
				Node  string   `json:"node"`
				Moved bool     `json:"moved"`
				Files int      `json:"files"`
				Lost  []string `json:"lost,omitempty"`
				Kept  string   `json:"kept_in,omitempty"`
			}{s.Cell, s.Node, done.Moved, done.Files, done.Lost, done.Kept})
		}
		p := printerOf(c)
		if done.Moved {
			p.line("The state of this home is that of the cell %s now, with %s of messages. It was read back and compared.",
				s.Cell, count(done.Files, "file"))
			p.lostFiles(done.Lost, "was missing or damaged in this home")
		} else {
			p.line("This home serves the cell %s now.", s.Cell)
		}
		if done.Kept != "" {
			p.line("Its own store is kept in %s.", done.Kept)
		}
		p.faint(fmt.Sprintf("`switchboard run --cluster` starts it as the node %s.", s.Node))
		return nil
	}
	return c
}

func newClusterLeave() *cobra.Command {
	var seat seatFlags
	var o cluster.Leaving
	c := &cobra.Command{
		Use: "leave", Short: "Take this home out of its cluster", Args: cobra.NoArgs,
		Long: "Takes this home out of its cluster; the other nodes go on. With --keep-data it takes the cell along: its\n" +
			"newest state becomes a store of this home, with the files of messages, and the cell ends: no other node goes\n" +
			"on with it. Stop the kernel first. If this is interrupted, run it again.",
		Example: "  switchboard cluster leave\n  switchboard cluster leave --keep-data",
	}
	asJSON := jsonFlag(c)
	seat.add(c)
	c.Flags().BoolVar(&o.Keep, "keep-data", false, "take the state of the cell along, and end the cell")
	c.Flags().BoolVar(&o.Sure, "yes", false, "also if other nodes serve it, none has its state, or data stays behind")
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := seat.open(c, *asJSON)
		if errors.Is(err, errNoDSN) {
			return fmt.Errorf("this home is in no cluster, as far as it knows: %w", err)
		}
		if err != nil {
			return err
		}
		var done cluster.Left
		err = moving(s.Home, func() error {
			done, err = cluster.Leave(c.Context(), s, o)
			return err
		})
		switch {
		case err != nil && c.Context().Err() != nil:
			return errors.New("interrupted: run it again to go on")
		case errors.Is(err, cluster.ErrOthers), errors.Is(err, cluster.ErrLast), errors.Is(err, cluster.ErrPinned):
			return fmt.Errorf("%w; or add --yes", err)
		case err != nil:
			return err
		case *asJSON:
			return printJSON(c, struct {
				Cell   string   `json:"cell"`
				Kept   bool     `json:"kept"`
				Undone bool     `json:"join_undone"`
				Files  int      `json:"files"`
				Lost   []string `json:"lost,omitempty"`
				Aside  string   `json:"copy_in,omitempty"`
			}{s.Cell, o.Keep && !done.Undone, done.Undone, done.Files, done.Lost, done.Aside})
		}
		p := printerOf(c)
		switch {
		case done.Undone:
			p.line("This home does not join the cell %s any more. Its store is its own again.", s.Cell)
		case o.Keep:
			p.line("This home has the state of the cell %s, with %s of messages. The cell has ended.", s.Cell,
				count(done.Files, "file"))
			p.lostFiles(done.Lost, "is missing in the cluster")
			p.faint("`switchboard run` starts it, on this machine alone.")
		default:
			p.line("This home has left the cell %s.", s.Cell)
		}
		if done.Aside != "" {
			p.line("Its copy of the state is kept in %s. A kernel that starts here begins with an empty store.", done.Aside)
		}
		return nil
	}
	return c
}

// lostFiles names files of messages that are lost.
func (p *printer) lostFiles(hashes []string, how string) {
	for n, hash := range hashes {
		if n == mostLost {
			p.line("  %s: %d more", p.paint(red, "lost"), len(hashes)-n)
			return
		}
		p.line("  %s: the file %s %s", p.paint(red, "lost"), hash, how)
	}
}

// moving runs f while no kernel can start.
func moving(h *config.Home, f func() error) error {
	err := home.WhileMoving(h, f)
	if errors.Is(err, home.ErrRunning) {
		return fmt.Errorf("nothing was changed: %w (%s): stop it first", home.ErrRunning, h.Path())
	}
	return err
}

var errNoDSN = errors.New("name a file that holds the connection string of PostgreSQL with --dsn-file")

// seatFlags say where a home is in a cluster. The configuration has what they leave out.
type seatFlags struct {
	dsnFile, cell, node, listen string
	joins                       bool
}

func (f *seatFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.dsnFile, "dsn-file", "", "file with the connection string of PostgreSQL, for this user alone")
	c.Flags().StringVar(&f.cell, "cell", "", "name of the cell")
}

func (f *seatFlags) open(c *cobra.Command, quiet bool) (s cluster.Seat, err error) {
	h, err := openHome()
	if err != nil {
		return s, err
	}
	settings, err := config.LoadCluster(h.ClusterFile())
	if err != nil {
		return s, err
	}
	s = cluster.Seat{Home: h, DSN: os.Getenv(clusterDSN)}
	file := settings.DSNFile
	if f.dsnFile != "" {
		if file, err = filepath.Abs(f.dsnFile); err != nil {
			return s, fmt.Errorf("find %s: %w", f.dsnFile, err)
		}
		s.DSN = ""
	}
	if s.DSN == "" && file == "" {
		return s, errNoDSN
	}
	if s.DSN == "" {
		if s.DSN, err = readDSN(h, file); err != nil {
			return s, err
		}
	}
	host, err := os.Hostname()
	joiningCell, joiningNode := cluster.Joining(h)
	if s.Node = cmp.Or(f.node, joiningNode, settings.Node, host); s.Node == "" {
		return s, fmt.Errorf("name this machine with --node: %w", err)
	}
	s.Cell = cmp.Or(f.cell, joiningCell, settings.Cell)
	if within, err := filepath.Rel(h.Path(), file); err == nil && !strings.HasPrefix(within, "..") {
		file = within
	}
	edited := func() ([]byte, error) {
		values := []config.Setting{{Path: []string{"node"}, Value: s.Node}, {Path: []string{"cell"}, Value: s.Cell}}
		if file != "" {
			values = append(values, config.Setting{Path: []string{"dsn_file"}, Value: file})
		}
		if f.listen != "" {
			values = append(values, config.Setting{Path: []string{"listen"}, Value: f.listen})
		}
		text, err := existing(h.ClusterFile())
		if err == nil && len(text) == 0 {
			text = []byte("# The place of this machine in its cluster: docs/cluster.md.\n")
		}
		if err == nil {
			text, err = config.EditCluster(h.ClusterFile(), text, values...)
		}
		return text, err
	}
	if f.joins { // fails before anything is moved
		if _, err := edited(); err != nil {
			return s, err
		}
	}
	s.Configure = func() error {
		text, err := edited()
		if err != nil {
			return err
		}
		return config.Replace(h.ClusterFile(), text)
	}
	s.Unconfigure = func() error {
		if err := os.Remove(h.ClusterFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if p := printerOf(c); !quiet {
		s.Note = p.line
	}
	return s, nil
}
