package main

import (
	"context"
	"os"
	"time"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/cluster"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/home/pin"
	"github.com/switchboard-run/switchboard/manifests"
	"github.com/switchboard-run/switchboard/store/postgres"
)

// holding returns what this machine has for a cell: the secrets of the enabled extensions,
// which of their programs it allows, and which of them have pinned data.
func holding(h *config.Home, own bool) (found cluster.Holding, err error) {
	o, err := seatOptions(h, own)
	if err != nil {
		return found, err
	}
	seen, err := home.Inspect(o)
	if err != nil {
		return found, err
	}
	secrets, pins := config.Open(h, o.Env).Secrets(), pin.Checker{Home: h}
	found.Programs, found.Data = map[string]string{}, map[string]bool{}
	for _, e := range seen.Entries {
		settings := e.Config
		switch {
		case e.Manifest == nil:
			continue
		case e.Disabled == nil:
		case e.Disabled.Cause == manifests.Refused: // above all, its program is not allowed on this machine
			settings = e.Manifest.Config
		default:
			continue
		}
		if e.Pinned {
			found.Data[e.ID] = e.Disabled == nil
		}
		for _, s := range e.Manifest.SecretsOf(settings) {
			if value, set := secrets.Lookup(s.Name); set {
				found.Secrets = append(found.Secrets, cluster.Secret{Name: s.Name, Value: value, Required: s.Required})
			}
		}
		if !e.Builtin && e.Manifest.Run.Command != "" {
			found.Programs[e.ID], _ = pins.Allowed(e.Manifest)
		}
	}
	return found, nil
}

// differences compares the nodes of a cluster.
func differences(ctx context.Context, d *postgres.Database) ([]cluster.Difference, error) {
	v, err := d.Look(ctx)
	if err != nil {
		return nil, err
	}
	all, err := d.Told(ctx)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, c := range v.Cells {
		if !c.Gone && c.Ended == "" {
			owners[c.Name] = c.Node
		}
	}
	return cluster.Compare(all, owners), nil
}

// reachTime bounds the wait of doctor for PostgreSQL.
const reachTime = 10 * time.Second

// cluster compares the nodes of the cluster that a home belongs to.
func (d *diagnosis) cluster(ctx context.Context, h *config.Home) {
	if _, err := os.Lstat(h.ClusterFile()); err != nil {
		return
	}
	const area = "Cluster"
	o, err := clusterOptions(h)
	if err != nil {
		d.add(area, levelError, "", "%s", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	var found []cluster.Difference
	var r *clusterReport
	db, err := postgres.Open(ctx, postgres.Options{DSN: o.DSN, Name: "doctor on " + o.Name})
	if err == nil {
		defer db.Close()
		found, err = differences(ctx, db)
	}
	if err == nil {
		r, err = readCluster(ctx, db)
	}
	if err != nil {
		d.add(area, levelError, "", "comparing the nodes failed: %s", err)
		return
	}
	for _, x := range found {
		d.add(area, levelWarning, x.Hint(), "%s", x)
	}
	for _, x := range r.Cells {
		switch {
		case r.waits(x):
			d.add(area, levelError, "", "the cell %s has no owner, because %s", x.Name, x.Pinned.Waiting(x.Name))
		case x.Pinned != nil:
			d.add(area, levelNote, "", "the cell %s isn't taken over when %s fails: %s", x.Name, x.Pinned.Node, x.Pinned)
		}
	}
	if len(found) == 0 {
		d.add(area, levelOK, "", "the nodes have the same key, and the same secrets and programs as the owners of the cells")
	}
}
