package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// kvArgument makes this program the extension kv.
const kvArgument = "kv"

func kvManifest() string {
	self, _ := os.Executable()
	return fmt.Sprintf("api: 1\nid: kv\nname: KV\nversion: 1.0.0\nrun: {command: %q, args: [%s]}\n"+
		"restart: {backoff: 20ms, max_backoff: 20ms, max: 1000}\n", self, kvArgument)
}

// operation is one use of a key. A line of the history is its begin, with Return 0, or its
// end.
type operation struct {
	Client  string `json:"client"`
	Key     string `json:"key"`
	Kind    string `json:"kind"`            // get, put, putAt
	Value   int64  `json:"value,omitempty"` // written or read
	Version int64  `json:"version"`         // putAt: expected; get: read; put, putAt: new, when it has returned
	At      int64  `json:"at,omitempty"`    // putAt: the expected version
	Call    int64  `json:"call"`
	Return  int64  `json:"return,omitempty"`
	Outcome string `json:"outcome,omitempty"` // done, refused, unknown
}

const (
	done    = "done"
	refused = "refused" // certainly nothing was stored
	unknown = "unknown"
)

const (
	kvClients  = 4
	kvKeys     = 2
	kvInterval = 10 * time.Millisecond
	// kvWindow is how long a key is used: a history of one key is short.
	kvWindow = 4 * time.Second
)

// restFile in the data directory of the extension has it rest: copies are alike only then.
const restFile = "rest"

// rest has the extensions kv of all nodes rest, until end is called.
func (w *world) rest() (end func(), err error) {
	if !w.kv {
		return func() {}, nil
	}
	for _, n := range w.nodes {
		dir := n.file("data", "kv")
		err = errors.Join(err, os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, restFile), nil, 0o600))
	}
	return func() {
		for _, n := range w.nodes {
			_ = os.Remove(n.file("data", "kv", restFile))
		}
	}, err
}

// clock is one that all processes of the machine share.
func clock() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// serveKV runs this program as an extension that reads and writes keys, several at a time,
// and records each operation before and after it. It asks on while its kernel is stopped.
func serveKV() {
	sdk.Serve(sdk.Extension{ID: "kv", Run: func(ctx context.Context, k *sdk.Kernel) error {
		f, err := os.OpenFile(filepath.Join(k.DataDir(), "history"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		h := &recorder{out: f}
		var clients sync.WaitGroup
		for c := range kvClients {
			clients.Go(func() {
				name := fmt.Sprintf("%d.%d", os.Getpid(), c)
				for n := 0; ctx.Err() == nil; n++ {
					if _, err := os.Stat(filepath.Join(k.DataDir(), restFile)); err == nil {
						time.Sleep(kvInterval)
						continue
					}
					// The operation has a goroutine of its own: one that hangs does not end the stream.
					var one sync.WaitGroup
					one.Go(func() { h.use(ctx, k, fmt.Sprintf("%s.%d", name, n)) })
					finished := make(chan struct{})
					go func() { one.Wait(); close(finished) }()
					select {
					case <-finished:
					case <-time.After(500 * time.Millisecond):
					}
					time.Sleep(kvInterval)
				}
			})
		}
		clients.Wait()
		return nil
	}})
}

type recorder struct {
	mu  sync.Mutex
	out *os.File
}

// note appends a line. It fails where the disk is full.
func (h *recorder) note(o operation) error {
	line, _ := json.Marshal(o)
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.WriteString("\n" + string(line) + "\n") // a torn line before it stays one
	return err
}

func (h *recorder) use(ctx context.Context, k *sdk.Kernel, client string) {
	o := operation{Client: client, Key: fmt.Sprintf("w%d.%d", clock()/int64(kvWindow), rand.IntN(kvKeys)), Call: clock()}
	switch rand.IntN(4) {
	case 0, 1:
		o.Kind = "get"
	case 2:
		o.Kind, o.Value = "put", rand.Int64N(1<<50)+1
	case 3:
		before, err := k.Get(ctx, o.Key)
		if err != nil {
			return
		}
		o.Kind, o.Value, o.At, o.Call = "putAt", rand.Int64N(1<<50)+1, before.Version, clock()
	}
	if h.note(o) != nil {
		return // what is not in the history must not happen
	}
	var err error
	if o.Kind == "get" {
		var v sdk.Value
		if v, err = k.Get(ctx, o.Key); err == nil {
			o.Version = v.Version
			if v.Version > 0 {
				err = v.Decode(&o.Value)
			}
		}
	} else {
		effect := sdk.Put(o.Key, o.Value)
		if o.Kind == "putAt" {
			effect = sdk.PutAt(o.Key, o.Value, o.At)
		}
		got, failed := k.Commit(ctx, effect)
		if err = failed; err == nil {
			o.Version = got[0].GetVersion()
		}
	}
	o.Return, o.Outcome = clock(), done
	switch {
	case errors.Is(err, contract.ErrConflict), errors.Is(err, contract.ErrFull):
		o.Outcome = refused
	case err != nil:
		o.Outcome = unknown
	}
	_ = h.note(o) // without its end, it has an unknown outcome
}

// history reads what the extensions kv of all nodes recorded.
func (w *world) history() (all []operation) {
	begun := map[string]operation{}
	for _, n := range w.nodes {
		f, err := os.Open(n.file("data", "kv", "history"))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var o operation
			if json.Unmarshal(lines.Bytes(), &o) != nil {
				continue // torn
			}
			id := n.name + o.Client
			if o.Return != 0 || begun[id].Return == 0 {
				begun[id] = o
			}
		}
		_ = f.Close()
	}
	for _, o := range begun {
		all = append(all, o)
	}
	return all
}

// entry is the state of a key. The first version of a key is any number; anyVersion until it
// was seen.
type entry struct{ value, version int64 }

const anyVersion = -1

// write returns the state after a write, and whether it can have been made.
func (e entry) write(o operation) (next entry, fits bool) {
	next = entry{o.Value, anyVersion}
	if e.version > 0 {
		next.version = e.version + 1
	}
	if o.Kind == "putAt" {
		if e.version != anyVersion && e.version != o.At || e.version == anyVersion && o.At == 0 {
			return e, false
		}
		if o.At > 0 {
			next.version = o.At + 1
		}
	}
	if o.Outcome == done {
		if next.version != anyVersion && next.version != o.Version {
			return e, false
		}
		next.version = o.Version
	}
	return next, true
}

// keys is the model of the keys: each is a register with a version that rises by one with
// each write after the first.
var keys = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		of := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(operation).Key
			of[key] = append(of[key], o)
		}
		for _, part := range of {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{entry{}} },
	Step: func(state, input, _ any) []any {
		s, o := state.(entry), input.(operation)
		switch {
		case o.Kind == "get" && (s.value != o.Value || s.version != anyVersion && s.version != o.Version):
			return nil
		case o.Kind == "get":
			return []any{entry{s.value, o.Version}}
		case o.Outcome == refused:
			return []any{s} // a conflict may be seen with a version that came meanwhile
		}
		next, fits := s.write(o)
		switch {
		case o.Outcome == unknown && fits: // it happened, or never did
			return []any{s, next}
		case o.Outcome == unknown:
			return []any{s}
		case fits:
			return []any{next}
		}
		return nil
	},
	DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
}

// linearizable checks a history of keys.
func linearizable(history []operation) (operations int, problems []string) {
	var all []porcupine.Operation
	last := int64(0)
	for _, o := range history {
		last = max(last, o.Call, o.Return)
	}
	slices.SortFunc(history, func(a, b operation) int { return cmp.Compare(a.Call, b.Call) })
	for i, o := range history {
		if o.Kind == "get" && o.Outcome != done {
			continue // it saw nothing
		}
		if o.Return == 0 || o.Outcome == unknown {
			o.Return, o.Outcome = last+1, unknown // it may still take effect
		}
		all = append(all, porcupine.Operation{ClientId: i, Input: o, Call: o.Call, Return: o.Return})
	}
	byKey := keys.Partition(all)
	model := keys.ToModel()
	for _, part := range byKey {
		switch porcupine.CheckOperationsTimeout(model, part, time.Minute) {
		case porcupine.Illegal:
			problems = append(problems, fmt.Sprintf("the key %s has a history that no order explains: %s",
				part[0].Input.(operation).Key, contradiction(part)))
		case porcupine.Unknown:
			problems = append(problems, fmt.Sprintf("the history of key %s was not checked within a minute",
				part[0].Input.(operation).Key))
		case porcupine.Ok:
		}
	}
	return len(all), problems
}

// contradiction is the shortest beginning of a history that cannot be explained, its end.
func contradiction(part []porcupine.Operation) string {
	model := keys.ToModel()
	for n := 1; n <= len(part); n++ {
		if porcupine.CheckOperationsTimeout(model, part[:n], 5*time.Second) == porcupine.Illegal {
			var text []string
			for _, o := range part[max(0, n-4):n] {
				text = append(text, fmt.Sprintf("%+v", o.Input))
			}
			return strings.Join(text, "; ")
		}
	}
	return "(as a whole)"
}
