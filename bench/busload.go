package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/home/consent/consenttest"
	"github.com/switchboard-run/switchboard/sdk"
)

// loadEvent is the event that an extension under load publishes: 300 bytes of JSON. Its
// fields have fixed offsets, so that the cost of JSON is not measured.
func loadEvent(n int) json.RawMessage {
	b := make([]byte, 0, 320)
	b = append(b, loadHead...)
	b = strconv.AppendInt(b, time.Now().UnixNano(), 10) // 19 digits
	b = append(b, loadFill...)
	b = strconv.AppendInt(b, int64(n), 10)
	return append(b, '}')
}

const (
	loadHead = `{"at":`
	timeSize = 19
)

var loadFill = `,"fill":"` + strings.Repeat("x", 255) + `","n":`

// readLoad returns the number of an event and its time of publishing.
func readLoad(payload []byte) (n int, at int64, err error) {
	if len(payload) < len(loadHead)+timeSize+len(loadFill)+2 {
		return 0, 0, fmt.Errorf("not an event of this program: %s", payload)
	}
	rest := payload[len(loadHead):]
	at, err = strconv.ParseInt(string(rest[:timeSize]), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	n, err = strconv.Atoi(string(rest[timeSize+len(loadFill) : len(rest)-1]))
	return n, at, err
}

const loadTopic = "publisher.load"

// result is the measurement of the subscriber.
type result struct {
	Events  int             `json:"events"`
	Took    time.Duration   `json:"took"`
	Latency []time.Duration `json:"latency"`
	CPU     time.Duration   `json:"-"` // of all processes, start included
}

// serveLoad is the bench binary as an extension: publisher COUNT WINDOW TOGETHER
// INTERVAL, subscriber COUNT RESULT, harm NAME, or plain.
func serveLoad(args []string) {
	switch args[0] {
	case "publisher":
		count, _ := strconv.Atoi(args[1])
		window, _ := strconv.Atoi(args[2])
		together, _ := strconv.Atoi(args[3])
		interval, _ := time.ParseDuration(args[4])
		sdk.Serve(sdk.Extension{ID: "publisher", Run: func(ctx context.Context, k *sdk.Kernel) error {
			return publishLoad(ctx, k, count, window, together, interval)
		}})
	case "harm":
		serveHarm(args[1])
	case "plain":
		servePlain()
	case "subscriber":
		count, _ := strconv.Atoi(args[1])
		s := &subscriber{want: count, file: args[2]}
		sdk.Serve(sdk.Extension{ID: "subscriber", Handle: s.handle})
	}
}

// publishLoad publishes count events, together of them in each durable commit, window
// commits at a time.
func publishLoad(ctx context.Context, k *sdk.Kernel, count, window, together int, interval time.Duration) error {
	var all sync.WaitGroup
	for w := range window {
		keys := make([]sdk.PublishOption, together) // the events of one commit are in different lanes
		for i := range keys {
			keys[i] = sdk.Key(strconv.Itoa(w*together + i))
		}
		all.Go(func() {
			for n := w * together; n < count; n += window * together {
				if interval > 0 {
					time.Sleep(interval)
				}
				events := make([]sdk.Effect, 0, together)
				for i := n; i < min(n+together, count); i++ {
					events = append(events, sdk.Publish(loadTopic, loadEvent(i), keys[i-n]))
				}
				if _, err := k.Commit(ctx, events...); err != nil {
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
	first int64
	seen  []bool
	r     result
}

func (s *subscriber) handle(_ context.Context, e sdk.Event) (sdk.Effects, error) {
	n, at, err := readLoad(e.Payload)
	if err != nil {
		return nil, err
	}
	now := time.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen, s.first, s.r.Latency = make([]bool, s.want), at, make([]time.Duration, 0, s.want)
	}
	if s.seen[n] {
		return nil, nil
	}
	s.seen[n] = true
	s.r.Events++
	s.r.Latency = append(s.r.Latency, time.Duration(now-at))
	if s.r.Events < s.want {
		return nil, nil
	}
	s.r.Took = time.Duration(now - s.first)
	s.r.Latency = []time.Duration{median(s.r.Latency), quantile(s.r.Latency, 0.99)}
	raw, err := json.Marshal(s.r)
	if err != nil {
		return nil, err
	}
	return nil, os.WriteFile(s.file, raw, 0o600)
}

func busLoad(b *bench) error {
	for _, c := range []struct {
		name                    string
		count, window, together int
		interval                time.Duration
	}{
		{"one event every 5 ms", 500, 1, 1, 5 * time.Millisecond},
		{"1 publisher, each event awaited", 5_000, 1, 1, 0},
		{"256 in flight", 100_000, 256, 1, 0},
		{"4096 in flight", 600_000, 4096, 1, 0},
		{"64 events a commit, 64 commits in flight", 600_000, 64, 64, 0},
	} {
		var rates []float64
		var p50, p99, cpu []time.Duration
		for range b.rounds {
			r, err := oneLoad(b, b.scale(c.count), c.window, c.together, c.interval)
			if err != nil {
				return err
			}
			rates = append(rates, float64(r.Events)/r.Took.Seconds())
			p50, p99, cpu = append(p50, r.Latency[0]), append(p99, r.Latency[1]), append(cpu, r.CPU/time.Duration(r.Events))
		}
		fmt.Printf("%s: %s, published to handled p50 %s, p99 %s, CPU per event %s\n",
			c.name, spread(rates, perSecond), spread(p50, milliseconds), spread(p99, milliseconds),
			spread(cpu, time.Duration.String))
	}
	return nil
}

// oneLoad drops a publisher and a subscriber into a home and waits until the subscriber
// has received everything.
func oneLoad(b *bench, count, window, together int, interval time.Duration) (r result, err error) {
	d, err := newBed()
	if err != nil {
		return r, err
	}
	defer d.close()
	if b.prepare != nil {
		if err := b.prepare(d); err != nil {
			return r, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	results, err := os.MkdirTemp("", "switchboard-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(results)
	file := filepath.Join(results, "result.json")
	for id, extension := range map[string]string{
		"subscriber": fmt.Sprintf("run: {command: %q, args: [extension, subscriber, \"%d\", %q]}\npermissions: {subscribe: "+
			"[%s], files: [{path: %q, write: true}]}\n",
			self, count, file, loadTopic, results),
		"publisher": fmt.Sprintf("requires: {extensions: [subscriber]}\nrun: {command: %q, args: [extension, publisher, "+
			"\"%d\", \"%d\", \"%d\", %q]}\npermissions: {publish: [%s]}\n",
			self, count, window, together, interval, loadTopic),
	} {
		dir := filepath.Join(d.home, "extensions", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return r, err
		}
		text := fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: 1.0.0\n%s", id, id, extension)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600),
			consenttest.Allow(d.home, id, text)); err != nil {
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
