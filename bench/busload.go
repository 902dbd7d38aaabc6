package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// load is what an extension under load publishes: about 300 bytes.
type load struct {
	N    int    `json:"n"`
	At   int64  `json:"at"` // Unix nanoseconds
	Fill string `json:"fill"`
}

var fill = strings.Repeat("x", 240)

const loadTopic = "publisher.load"

// result is what the subscriber saw.
type result struct {
	Events  int             `json:"events"`
	Took    time.Duration   `json:"took"`
	Latency []time.Duration `json:"latency"`
	CPU     time.Duration   `json:"-"` // of all processes, start included
}

// serveLoad is the bench binary as an extension: publisher COUNT WINDOW
// INTERVAL, or subscriber COUNT RESULT.
func serveLoad(args []string) {
	switch args[0] {
	case "publisher":
		count, _ := strconv.Atoi(args[1])
		window, _ := strconv.Atoi(args[2])
		interval, _ := time.ParseDuration(args[3])
		sdk.Serve(sdk.Extension{ID: "publisher", Run: func(ctx context.Context, k *sdk.Kernel) error {
			return publishLoad(ctx, k, count, window, interval)
		}})
	case "subscriber":
		count, _ := strconv.Atoi(args[1])
		s := &subscriber{want: count, file: args[2]}
		sdk.Serve(sdk.Extension{ID: "subscriber", Handle: s.handle})
	}
}

// publishLoad publishes count events, each a commit of its own that waits until
// it is durable, window at a time.
func publishLoad(ctx context.Context, k *sdk.Kernel, count, window int, interval time.Duration) error {
	var all sync.WaitGroup
	for w := range window {
		all.Go(func() {
			for n := w; n < count; n += window {
				if interval > 0 {
					time.Sleep(interval)
				}
				e := sdk.Publish(loadTopic, load{N: n, At: time.Now().UnixNano(), Fill: fill}, sdk.Key(strconv.Itoa(w)))
				if _, err := k.Commit(ctx, e); err != nil {
					k.Log().Error("publishing failed", "error", err)
					return
				}
			}
		})
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

type subscriber struct {
	want int
	file string

	mu    sync.Mutex
	first time.Time
	seen  map[int]bool
	r     result
}

func (s *subscriber) handle(_ context.Context, e sdk.Event) (sdk.Effects, error) {
	var l load
	if err := e.Decode(&l); err != nil {
		return nil, err
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen, s.first = map[int]bool{}, time.Unix(0, l.At)
	}
	if s.seen[l.N] {
		return nil, nil
	}
	s.seen[l.N] = true
	s.r.Events++
	s.r.Latency = append(s.r.Latency, now.Sub(time.Unix(0, l.At)))
	if s.r.Events < s.want {
		return nil, nil
	}
	s.r.Took = now.Sub(s.first)
	s.r.Latency = []time.Duration{median(s.r.Latency), quantile(s.r.Latency, 0.99)}
	raw, err := json.Marshal(s.r)
	if err != nil {
		return nil, err
	}
	return nil, os.WriteFile(s.file, raw, 0o600)
}

func busLoad(b *bench) error {
	for _, c := range []struct {
		name          string
		count, window int
		interval      time.Duration
	}{
		{"one event every 5 ms", 500, 1, 5 * time.Millisecond},
		{"1 publisher, each event awaited", 5_000, 1, 0},
		{"256 in flight", 100_000, 256, 0},
		{"4096 in flight", 300_000, 4096, 0},
	} {
		var rates []float64
		var p50, p99, cpu []time.Duration
		for range b.rounds {
			r, err := oneLoad(b, b.scale(c.count), c.window, c.interval)
			if err != nil {
				return err
			}
			rates = append(rates, float64(r.Events)/r.Took.Seconds())
			p50, p99, cpu = append(p50, r.Latency[0]), append(p99, r.Latency[1]), append(cpu, r.CPU/time.Duration(r.Events))
		}
		fmt.Printf("%s: %s, published to handled p50 %s, p99 %s, CPU per event %s\n",
			c.name, spread(rates, perSecond), spread(p50, milliseconds), spread(p99, milliseconds), spread(cpu, time.Duration.String))
	}
	return nil
}

// oneLoad drops a publisher and a subscriber into a home and waits until the
// subscriber has seen everything.
func oneLoad(b *bench, count, window int, interval time.Duration) (r result, err error) {
	d, err := newBed()
	if err != nil {
		return r, err
	}
	defer d.close()
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	file := filepath.Join(d.home, "result.json")
	for id, extension := range map[string]string{
		"subscriber": fmt.Sprintf("run: {command: %q, args: [extension, subscriber, \"%d\", %q]}\npermissions: {subscribe: [%s]}\n", self, count, file, loadTopic),
		"publisher": fmt.Sprintf("requires: {extensions: [subscriber]}\nrun: {command: %q, args: [extension, publisher, \"%d\", \"%d\", %q]}\npermissions: {publish: [%s]}\n",
			self, count, window, interval, loadTopic),
	} {
		dir := filepath.Join(d.home, "extensions", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return r, err
		}
		text := fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: 1.0.0\n%s", id, id, extension)
		if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600); err != nil {
			return r, err
		}
	}
	if err := d.start(b.binary); err != nil {
		return r, err
	}
	deadline := time.Now().Add(2 * time.Minute)
	for time.Now().Before(deadline) {
		if raw, err := os.ReadFile(file); err == nil && len(raw) > 0 {
			r.CPU = d.cpu()
			return r, json.Unmarshal(raw, &r)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // waiting for another process
	}
	return r, fmt.Errorf("the subscriber did not see %d events within two minutes", count)
}
