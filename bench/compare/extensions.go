package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/sdk"
)

// runExtensions measures from extension to extension: the real binary, with a publisher and
// a subscriber as separate processes. The clock stops when the last event is handled, not
// when its acknowledgement is committed. CPU is that of the kernel and all its extensions
// from start to end, per event, including the warm-up.
func runExtensions(o options) (f figures, err error) {
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	file := filepath.Join(o.dir, "data", "subscriber", "result.json") // writable in the sandbox
	for id, lines := range map[string]string{
		"subscriber": fmt.Sprintf("run: {command: %q, args: [extension, subscriber, %q]}\npermissions: {subscribe: "+
			"[publisher.load, publisher.end]}\n", self, file),
		"publisher": fmt.Sprintf("requires: {extensions: [subscriber]}\nrun: {command: %q, args: [extension, publisher, "+
			"\"%d\", %q, %q]}\npermissions: {publish: [publisher.load, publisher.end]}\n",
			self, o.publishers, o.warm, o.span),
	} {
		dir := filepath.Join(o.dir, "extensions", id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return f, err
		}
		text := fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: 1.0.0\n%s", id, id, lines)
		if err := os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600); err != nil {
			return f, err
		}
	}
	// What they ask for needs no question.
	config := "extensions: {subscriber: {allow: true}, publisher: {allow: true}}\n"
	if err := os.WriteFile(filepath.Join(o.dir, "config.yaml"), []byte(config), 0o600); err != nil {
		return f, err
	}
	kernel := exec.Command(o.binary, "run")
	kernel.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + o.dir, "SWITCHBOARD_HOME=" + o.dir, "TZ=UTC"}
	kernel.Stderr = os.Stderr
	if err := kernel.Start(); err != nil {
		return f, err
	}
	var raw []byte
	for end := time.Now().Add(o.warm + o.span + 2*time.Minute); len(raw) == 0 &&
		time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		raw, _ = os.ReadFile(file)
	}
	_ = kernel.Process.Signal(syscall.SIGTERM)
	_ = kernel.Wait()
	if len(raw) == 0 {
		return f, fmt.Errorf("the subscriber did not see everything within two minutes")
	}
	var r report
	err = json.Unmarshal(raw, &r)
	// including its children
	r.CPU = (kernel.ProcessState.UserTime() + kernel.ProcessState.SystemTime()) / time.Duration(max(r.All, 1))
	return r.figures, err
}

// report is the measurement of the subscriber.
type report struct {
	figures
	All int // events, including the warm-up
}

// ending is the last report of the publisher.
type ending struct {
	Events   int
	Since    int64 // Unix nanoseconds
	Accepted spread
}

// serve runs this binary as an extension: publisher PUBLISHERS WARM SPAN, or subscriber
// RESULT.
func serve(args []string) {
	switch {
	case args[0] == "publisher" && len(args) == 4:
		publishers, _ := strconv.Atoi(args[1])
		warm, _ := time.ParseDuration(args[2])
		span, _ := time.ParseDuration(args[3])
		sdk.Serve(sdk.Extension{ID: "publisher", Run: func(ctx context.Context, k *sdk.Kernel) error {
			if _, err := publish(ctx, k, publishers, warm); err != nil {
				return err
			}
			end := ending{Since: time.Now().UnixNano()}
			accepted, err := publish(ctx, k, publishers, span)
			if err != nil {
				return err
			}
			end.Events, end.Accepted = len(accepted), spreadOf(accepted)
			if _, err := k.Commit(ctx, sdk.Publish("publisher.end", end)); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		}})
	case args[0] == "subscriber" && len(args) == 2:
		s := &subscriber{file: args[1]}
		sdk.Serve(sdk.Extension{ID: "subscriber", Handle: s.handle})
	}
}

// publish runs a number of publishers for a while. Each waits until its event is durable.
func publish(ctx context.Context, k *sdk.Kernel, publishers int, span time.Duration) ([]time.Duration, error) {
	took := make([][]time.Duration, publishers)
	errs := make([]error, publishers)
	end := time.Now().Add(span)
	var all sync.WaitGroup
	for p := range publishers {
		key := strconv.Itoa(p)
		all.Go(func() {
			for time.Now().Before(end) && errs[p] == nil {
				begun := time.Now()
				_, errs[p] = k.Commit(ctx, sdk.Publish("publisher.load", json.RawMessage(event()), sdk.Key(key)))
				took[p] = append(took[p], time.Since(begun))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return slices.Concat(took...), nil
}

type subscriber struct {
	file string

	mu   sync.Mutex
	took []handled
	last time.Time
	end  *ending
}

// handled is one event that the subscriber received.
type handled struct {
	at   int64 // published, Unix nanoseconds
	took time.Duration
}

func (s *subscriber) handle(_ context.Context, e sdk.Event) (sdk.Effects, error) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Topic == "publisher.end" {
		s.end = &ending{}
		if err := e.Decode(s.end); err != nil {
			return nil, err
		}
	} else {
		at := publishedAt(e.Payload)
		s.took, s.last = append(s.took, handled{at.UnixNano(), now.Sub(at)}), now
	}
	if s.end == nil {
		return nil, nil
	}
	var took []time.Duration
	for _, h := range s.took {
		if h.at >= s.end.Since {
			took = append(took, h.took)
		}
	}
	if len(took) < s.end.Events {
		return nil, nil
	}
	span := s.last.Sub(time.Unix(0, s.end.Since))
	raw, err := json.Marshal(report{
		figures{Events: len(took), Rate: float64(len(took)) / span.Seconds(), Accepted: s.end.Accepted,
			Handled: spreadOf(took)}, len(s.took),
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.file+".new", raw, 0o600); err != nil {
		return nil, err
	}
	return nil, os.Rename(s.file+".new", s.file)
}
