package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// startWarm starts kernels, and has each answer a few messages.
func startWarm(b *bench, beds []*bed) error {
	for _, d := range beds {
		if err := d.start(b.binary); err != nil {
			return err
		}
		if err := d.warm(); err != nil {
			return err
		}
	}
	return nil
}

// pruneStored measures messages while the kernel prunes a store of old events. It alternates
// with an empty store: a slowdown of both is due to the machine.
func pruneStored(b *bench, full, empty *bed) error {
	path := filepath.Join(full.home, "switchboard.db")
	beds := []*bed{empty, full}
	if err := startWarm(b, beds); err != nil {
		return err
	}
	defer full.stop()               //nolint:errcheck // closing the bed does the same
	var times [2][2][]time.Duration // whether it prunes, of which bed
	last, err := oldest(path)
	if err != nil {
		return err
	}
	first, blocks, logMost := last, [2]int{}, uint64(0)
	var began time.Time
	const most = 8 // blocks of each
	for blocks[1] < most {
		now, err := oldest(path)
		if err != nil {
			return err
		}
		pruning := 0
		if now != last || !began.IsZero() {
			pruning = 1
			if began.IsZero() {
				began, first = time.Now(), last
			}
		}
		last = now
		if pruning == 0 && blocks[0] >= most {
			time.Sleep(time.Second) //nolint:forbidigo // it begins a minute after the start
			continue
		}
		blocks[pruning]++
		for i, d := range beds {
			took, err := block(d, b.scale(200))
			if err != nil {
				return err
			}
			times[pruning][i] = append(times[pruning][i], took...)
		}
		logMost = max(logMost, fileSize(path+"-wal"))
	}
	for pruning, words := range []string{"before pruning", "while it prunes"} {
		beside(words, times[pruning])
	}
	at, err := oldest(path)
	if err != nil {
		return err
	}
	before, from := cpuOf(full.kernel.Process.Pid), time.Now()
	time.Sleep(10 * time.Second) //nolint:forbidigo // what it takes when nothing else happens
	spent, pause := cpuOf(full.kernel.Process.Pid)-before, time.Since(from)
	if last, err = oldest(path); err != nil {
		return err
	}
	fmt.Printf("pruned amid the messages: %.0f events/s; beside nothing: %.0f events/s with %.0f %% of a core\n",
		float64(at-first)/from.Sub(began).Seconds(), float64(last-at)/pause.Seconds(), 100*spent.Seconds()/pause.Seconds())
	fmt.Printf("the log had at most %s; the store has %s\n", humanize.IBytes(logMost), humanize.IBytes(fileSize(path)))
	return nil
}

// beside prints the latencies of messages, of the empty store and of the full one.
func beside(words string, times [2][]time.Duration) {
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		e, f := quantile(times[0], q.at), quantile(times[1], q.at)
		fmt.Printf("%s, %s per message: %s, empty store %s, ratio %.2f\n", words, q.name, milliseconds(f), milliseconds(e),
			float64(f)/float64(e))
	}
}

// backupStored measures messages during a backup, alternately on both beds.
func backupStored(b *bench, full, empty *bed) error {
	beds := []*bed{empty, full}
	if err := startWarm(b, beds); err != nil {
		return err
	}
	defer full.stop()  //nolint:errcheck // closing the bed does the same
	defer empty.stop() //nolint:errcheck // likewise
	var times [2][2][]time.Duration
	memory, most := [2]int64{}, uint64(0)
	measure := func(during int) error {
		for i, d := range beds {
			took, err := block(d, b.scale(100))
			if err != nil {
				return err
			}
			times[during][i] = append(times[during][i], took...)
		}
		kib, _ := full.pss()
		memory[during] = max(memory[during], kib)
		most = max(most, fileSize(filepath.Join(full.home, "switchboard.db-wal")))
		return nil
	}
	for range 3 {
		if err := measure(0); err != nil {
			return err
		}
	}
	file := filepath.Join(full.home, "made.tar.gz")
	c := exec.Command(b.binary, "backup", "create", file)
	c.Env, c.Stderr = full.kernel.Env, os.Stderr
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- c.Run() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("making the backup: %w", err)
			}
			fmt.Printf("a backup: %s in %s; PSS %.1f MiB before, %.1f MiB meanwhile; the log had at most %s\n",
				humanize.IBytes(fileSize(file)),
				time.Since(began).Round(time.Second), float64(memory[0])/1024, float64(memory[1])/1024, humanize.IBytes(most))
			beside("before the backup", times[0])
			beside("while it is made", times[1])
			return os.Remove(file)
		default:
			if err := measure(1); err != nil {
				return err
			}
		}
	}
}

// block is some paced messages.
func block(d *bed, n int) (times []time.Duration, err error) {
	for i := range n {
		began := time.Now()
		d.say(int64(2+i%pacedChats), fmt.Sprint("message ", i))
		if _, err := d.reply(context.Background()); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the pace
	}
	return times, nil
}

// oldest returns the seq of the oldest event.
func oldest(path string) (seq int64, err error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	err = sqlitex.ExecuteTransient(conn, "SELECT coalesce(min(seq), 0) FROM event",
		&sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			seq = s.ColumnInt64(0)
			return nil
		}})
	return seq, err
}

func fileSize(path string) uint64 {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return 0
	}
	return uint64(info.Size()) //nolint:gosec // not negative
}
