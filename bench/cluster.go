package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/switchboard-run/switchboard/bench/servers"
	"github.com/switchboard-run/switchboard/store/postgres/postgrestest"
)

// cluster compares a kernel on its own store with one over PostgreSQL, and over PostgreSQL
// with a synchronous standby, in turns. All servers are on this machine.
func cluster(b *bench) error {
	return servers.Stand(func(g *servers.Ground) error {
		alone, pair := servers.Start(g, false), servers.Start(g, true)
		for _, s := range []*servers.Pair{alone, pair} {
			trip, commit, err := distance(s.Primary)
			if err != nil {
				return err
			}
			fmt.Printf("PostgreSQL, standby %t: round trip %s, a commit of one row %s\n", s.Standby != nil, milliseconds(trip),
				milliseconds(commit))
		}
		ways := []struct {
			name string
			dsn  func() string
		}{
			{"embedded", nil}, {"over PostgreSQL", alone.Primary.Database}, {"with a standby", pair.Primary.Database},
		}
		p50, cpu, rate, bus := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
		for range b.rounds {
			for _, way := range ways {
				b.prepare = nil
				if way.dsn != nil {
					b.prepare = func(d *bed) error { return d.join(way.dsn()) }
				}
				p, perSecond, err := b.talk()
				if err != nil {
					return err
				}
				r, err := oneLoad(b, b.scale(100_000), 256, 1, 0)
				if err != nil {
					return err
				}
				p50[way.name] = append(p50[way.name], inMs(p.p50))
				cpu[way.name] = append(cpu[way.name], inMs(p.cpu))
				rate[way.name] = append(rate[way.name], perSecond)
				bus[way.name] = append(bus[way.name], float64(r.Events)/r.Took.Seconds())
			}
		}
		b.prepare = nil
		for _, m := range []struct {
			name string
			of   map[string][]float64
			show func(float64) string
		}{
			{"message to reply, p50", p50, inMilliseconds}, {"CPU of the kernel's processes per message", cpu, inMilliseconds},
			{"256 chats", rate, perSecond}, {"bus, 256 in flight", bus, perSecond},
		} {
			for _, way := range ways {
				var beside []float64
				for i, v := range m.of[way.name] {
					beside = append(beside, v/m.of["embedded"][i])
				}
				fmt.Printf("%s, %s: %s, %s\n", m.name, way.name, spread(m.of[way.name], m.show), spread(beside, times))
			}
		}
		return nil
	})
}

func inMilliseconds(f float64) string { return fmt.Sprintf("%.2f ms", f) }

// talk measures paced messages, and many chats.
func (b *bench) talk() (p paced, perSecond float64, err error) {
	d, err := newBed()
	if err != nil {
		return p, 0, err
	}
	defer d.close()
	if b.prepare != nil {
		if err := b.prepare(d); err != nil {
			return p, 0, err
		}
	}
	if err := errors.Join(d.start(b.binary), d.warm()); err != nil {
		return p, 0, err
	}
	if p, err = pace(d, b.scale(500)); err != nil {
		return p, 0, err
	}
	perSecond, _, err = crowd(d, 256, b.scale(5000))
	return p, perSecond, err
}

// join makes the bed a node of a cluster of its own.
func (d *bed) join(dsn string) error {
	d.args = []string{"--cluster"}
	return errors.Join(os.WriteFile(filepath.Join(d.home, "dsn"), []byte(dsn), 0o600),
		os.WriteFile(filepath.Join(d.home, "cluster.yaml"), []byte("dsn_file: dsn\nnode: bench\n"), 0o600))
}

// distance measures a query that does nothing, and a commit.
func distance(s *postgrestest.Server) (trip, commit time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = c.Close(ctx) }()
	measure := func(sql string) time.Duration {
		var all []time.Duration
		for range 200 {
			began := time.Now()
			_, failed := c.Exec(ctx, sql).ReadAll()
			err = errors.Join(err, failed)
			all = append(all, time.Since(began))
		}
		return median(all)
	}
	trip = measure("SELECT 1")
	measure("CREATE TABLE IF NOT EXISTS distance (n integer)")
	return trip, measure("INSERT INTO distance VALUES (1)"), err
}
