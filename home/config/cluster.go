package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"

	"github.com/switchboard-run/switchboard/internal/filewatch"
	"github.com/switchboard-run/switchboard/manifests/strictyaml"
)

// Cluster is the content of cluster.yaml: what `switchboard run --cluster` needs to know
// of this machine. Unlike config.yaml, the machines of a cluster do not share it.
type Cluster struct {
	// DSNFile holds the connection string of PostgreSQL; SWITCHBOARD_CLUSTER_DSN wins.
	DSNFile string `yaml:"dsn_file" check:"text"`
	Node    string `yaml:"node" check:"text"`                // empty: the machine's name
	Cell    string `yaml:"cell" default:"main" check:"cell"` // of this home
	// Standbys is the number of further cells for which this machine holds extensions ready
	// while another one owns them.
	Standbys int `yaml:"standbys" default:"8" min:"0"`
	// Listen is where the other machines reach this one; empty: they do not.
	Listen string `yaml:"listen" check:"host_port"`
}

// ClusterFile is the file with the settings of this machine in a cluster.
func (h *Home) ClusterFile() string { return filepath.Join(h.path, "cluster.yaml") }

// ClusterKey is the file with the key that all machines of a cluster share.
func (h *Home) ClusterKey() string { return filepath.Join(h.path, "cluster.key") }

// cells is the directory of a node's home with the homes of its further cells.
const cells = "cells"

// Cell is the home of a further cell of this node.
func (h *Home) Cell(name string) string { return filepath.Join(h.path, cells, name) }

// Node is the home of the node that this home is a further cell of; empty: it is none.
func (h *Home) Node() string {
	dir := filepath.Dir(h.path)
	node := &Home{path: filepath.Dir(dir)}
	if filepath.Base(dir) != cells || !node.Clustered() {
		return ""
	}
	return node.path
}

// Clustered reports whether the home is that of a node of a cluster, or a further cell's.
func (h *Home) Clustered() bool {
	_, err := os.Lstat(h.ClusterFile())
	return err == nil || h.Node() != ""
}

// LoadCluster reads a cluster.yaml; a missing one has the defaults.
func LoadCluster(file string) (*Cluster, error) {
	data, err := filewatch.Read(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the settings of this node: %w", err)
	}
	return parseCluster(file, data)
}

func parseCluster(file string, data []byte) (*Cluster, error) {
	c := &Cluster{}
	doc := strictyaml.Decode(file, data, c, checks)
	if err := doc.Problems().Err(); err != nil {
		return nil, err
	}
	return c, nil
}

var cellName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// CellName returns an error unless a text can be the name of a cell. Names come from
// PostgreSQL and become directories of homes.
func CellName(name string) error {
	if cellName.MatchString(name) {
		return nil
	}
	return fmt.Errorf("%q can't be the name of a cell: use up to 64 lower-case letters, digits, - and _", name)
}

func checkCell(s string) *strictyaml.Fault {
	if err := CellName(s); err != nil {
		return strictyaml.Faultf("%s", err)
	}
	return nil
}

func checkHostPort(s string) *strictyaml.Fault {
	if host, port, err := net.SplitHostPort(s); err != nil || host == "" || port == "" {
		return strictyaml.Faultf("%q is not an address that other machines can reach: write host:port, "+
			"such as kitchen.lan:7718", s)
	}
	return nil
}
