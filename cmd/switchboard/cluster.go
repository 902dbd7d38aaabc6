package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/cmd/switchboard/rest"
	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/cluster"
	"github.com/switchboard-run/switchboard/home/cluster/link"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	// guardCommand makes the binary the guard of a node's lease.
	guardCommand = "lease-guard"
	clusterDSN   = "SWITCHBOARD_CLUSTER_DSN"

	forever = 100 * 365 * 24 * time.Hour
)

// runCluster runs a node of a cluster. When it loses its lease it executes itself again, and
// follows others: nothing of an owner is left in the process.
func runCluster(c *cobra.Command, h *config.Home) error {
	cluster.EndChildren()
	o, err := clusterOptions(h)
	if err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	o.Open = openSeat(sync.OnceValues(orphans.New))
	n, err := cluster.Open(c.Context(), o)
	if err != nil {
		return fmt.Errorf("start the node: %w", err)
	}
	defer n.Close()
	p := printerOf(c)
	p.line("Switchboard %s runs on %s, as the node %s of the cell %s.", version, h.Path(), o.Name, o.Cell)
	go rest.Watch(c.Context())
	err = n.Run(c.Context())
	if errors.Is(err, journal.ErrFenced) && c.Context().Err() == nil {
		p.line("This node does not own its cells any more: %v. It starts again and follows.", err)
		again()
	}
	return err
}

// seatOptions are the options of a cell's kernel. The environment of this process is that of
// the node's own cell: a secret in it is not for the others.
func seatOptions(h *config.Home, own bool) (home.Options, error) {
	o, err := kernelOptions(h)
	if !own {
		o.Environ = home.HarmlessEnviron(o.Environ)
		o.Env = home.EnvironLookup(o.Environ)
	}
	o.Pinned = true
	return o, err
}

// openSeat opens kernels of cells. They share the processes of this program.
func openSeat(
	processes func() (*orphans.Processes, error),
) func(context.Context, cluster.Place) (cluster.Kernel, error) {
	return func(ctx context.Context, s cluster.Place) (cluster.Kernel, error) {
		o, err := seatOptions(s.Home, s.Own)
		if err != nil {
			return nil, err
		}
		if o.Processes, err = processes(); err != nil {
			return nil, err
		}
		o.Node, o.Cluster, o.Files, o.Ready, o.Changed = s.Node, s.Store, s.Files, s.Ready, s.Changed
		k, err := openWith(ctx, o)
		if err != nil {
			return nil, err
		}
		return k, nil
	}
}

// again replaces this process by a new one of the same program, with the same number. The
// processes of its extensions are killed first.
func again() {
	cluster.KillChildren(os.Getpid())
	self, err := os.Executable()
	if err == nil {
		signal.Reset()
		err = syscall.Exec(self, os.Args, os.Environ()) //nolint:gosec // it is this program
	}
	fmt.Fprintln(os.Stderr, "switchboard: start again:", err)
	os.Exit(1)
}

// clusterOptions reads the configuration of the cluster. The connection string may hold a
// password, so it is no argument.
func clusterOptions(h *config.Home) (o cluster.Options, err error) {
	settings, err := config.LoadCluster(h.ClusterFile())
	if err != nil {
		return o, err
	}
	o = cluster.Options{
		DSN: os.Getenv(clusterDSN), Name: settings.Node, Cell: settings.Cell, Version: version, Home: h,
		Standbys: settings.Standbys,
		Log:      hclog.New(&hclog.LoggerOptions{Name: "cluster", Output: os.Stderr}),
		Reach: cluster.Reach{
			KeyFile: h.ClusterKey(), Listen: settings.Listen, Ports: ports, Control: portControl, Check: home.CheckShared,
			Holding: holding,
		},
	}
	if o.DSN == "" {
		if settings.DSNFile == "" {
			return o, fmt.Errorf("the connection string of PostgreSQL is missing: name a file that holds it as dsn_file in %s, "+
				"or set %s", h.ClusterFile(), clusterDSN)
		}
		if o.DSN, err = readDSN(h, settings.DSNFile); err != nil {
			return o, err
		}
	}
	host, err := os.Hostname()
	if o.Name = cmp.Or(o.Name, host); o.Name == "" {
		return o, fmt.Errorf("name this node as node in %s: %w", h.ClusterFile(), err)
	}
	o.Window = restoreWindow()
	self, err := os.Executable()
	o.Guard = []string{self, guardCommand}
	return o, err
}

// restoreWindow returns the setting of a home, as it was read last.
func restoreWindow() func(*config.Home) time.Duration {
	var known sync.Map
	return func(h *config.Home) time.Duration {
		if settings, err := config.Load(h.Config()); err == nil {
			known.Store(h.Path(), settings.Retention.Restore)
		}
		if window, ok := known.Load(h.Path()); ok {
			return window.(time.Duration) //nolint:forcetypeassert // as stored
		}
		return forever // until the configuration can be read
	}
}

// readDSN reads a connection string from a file that only this user can read.
func readDSN(h *config.Home, path string) (dsn string, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.Path(), path)
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%w: others can read it: chmod 600 %s", fs.ErrPermission, path)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path) //nolint:gosec // named by the owner
	}
	if err != nil {
		return "", fmt.Errorf("read the connection string of PostgreSQL: %w", err)
	}
	if dsn = strings.TrimSpace(string(text)); dsn == "" {
		return "", fmt.Errorf("read the connection string of PostgreSQL: %s is empty", path)
	}
	return dsn, nil
}

// Ports that the owner of a cell serves, and the other nodes relay.
const (
	portControl = "control"
	portChat    = "chat"
	portPage    = "page"
)

func ports(h *config.Home) []link.Port {
	all := []link.Port{
		{
			Name: portControl, Network: "unix", Address: filepath.Join(h.RuntimeDir(), contract.ControlSocket),
			Token: filepath.Join(h.Path(), contract.ControlToken),
		},
		{Name: portChat, Network: "unix", Address: chatSocket(h), Token: chatToken(h)},
	}
	if address := pageAddress(h); address != "" {
		all = append(all, link.Port{Name: portPage, Network: "tcp", Address: address, Spare: true})
	}
	return all
}

// pageAddress is where the page listens, if only this machine can reach it: a page for
// others has an address that leads to the owner by other means.
func pageAddress(h *config.Home) string {
	settings, err := config.Load(h.Config())
	if err != nil || !settings.EnabledExtension(webChannel, true) {
		return ""
	}
	address, _ := settings.Extensions[webChannel].Config["listen"].(string)
	address = cmp.Or(address, "127.0.0.1:7717")
	host, _, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return ""
	}
	return address
}
