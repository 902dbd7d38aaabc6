package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite"
)

// job carries an event through River.
type job struct {
	Event string `json:"event"`
}

// Kind implements river.JobArgs.
func (job) Kind() string { return "load" }

type worker struct {
	river.WorkerDefaults[job]
	handle func([]byte)
}

// Work implements river.Worker.
func (w *worker) Work(_ context.Context, j *river.Job[job]) error {
	w.handle([]byte(j.Args.Event))
	return nil
}

// openRiver opens River on SQLite, with the pragmas of Switchboard's journal and one
// connection, as its driver requires. Inserts wake the workers at once, because they are in
// the same process.
func openRiver(o options, handle func([]byte)) (*queue, error) {
	ctx := context.Background()
	path := filepath.Join(o.dir, "river.db")
	db, err := sql.Open("sqlite",
		"file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	migrator, err := rivermigrate.New(riversqlite.New(db), nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("migrating: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{handle: handle})
	client, err := river.NewClient(riversqlite.New(db), &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: onTheWay}}, Workers: workers,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: 100 * time.Millisecond, // the poll is for scheduled jobs
		JobTimeout: -1, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &queue{
		publish: func(ctx context.Context, _ int, event []byte) error {
			_, err := client.Insert(ctx, job{string(event)}, nil)
			return err
		},
		settled: func(ctx context.Context) error {
			for open := 1; open > 0; time.Sleep(time.Millisecond) {
				if err := db.QueryRowContext(ctx,
					"SELECT count(*) FROM river_job WHERE state IN ('available', 'running')").Scan(&open); err != nil {
					return err
				}
			}
			return nil
		},
		close: func() {
			_ = client.StopAndCancel(ctx)
			_ = db.Close()
		},
	}, nil
}
