// Command faults kills Switchboard with -9 while it does its main job, and counts losses
// and repetitions at the servers that it talks to. README.md has the method and the
// results.
//
// The exit status is 1 if anything was lost or done twice, and 2 if the measurement failed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
)

// run is one run of the command.
type run struct {
	seed     uint64
	binary   string
	channel  string // where people write
	short    bool
	kills    int
	parallel int
	soak     time.Duration
	every    time.Duration
	rate     float64
	quiet    bool
	report   report
}

// parts in their order. The soak runs only on request.
var parts = []struct {
	name string
	run  func(*run, *rand.Rand) error
}{
	{"spoiled", spoiled},
	{"commits", commits},
	{"instants", instants},
	{"upgrades", upgrades},
	{"soak", soak},
}

func main() {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "extension":
		ledger.ServeShop(true)
		return
	case len(os.Args) > 1 && os.Args[1] == ledger.Idles:
		select {}
	}
	r := &run{}
	flag.StringVar(&r.binary, "binary", "", "a switchboard binary built with -tags crashpoints; empty: build it")
	flag.Uint64Var(&r.seed, "seed", 0, "repeats the choices of a run; 0: a new one")
	flag.BoolVar(&r.short, "short", false, "a few points and kills of each, for a look")
	flag.IntVar(&r.kills, "kills", 200, "how often something is killed at a random instant")
	flag.IntVar(&r.parallel, "parallel", 4, "how many homes are used at a time, where a point needs one of its own")
	flag.DurationVar(&r.soak, "soak", 0, "how long the soak takes, such as 30m; 0: there is none")
	flag.DurationVar(&r.every, "every", 10*time.Second, "how often the soak kills")
	flag.Float64Var(&r.rate, "rate", 0, "messages per second of the soak; 0: half of the measured maximum")
	only := flag.String("only", "", "comma-separated: spoiled,commits,instants,upgrades,soak")
	channels := flag.String("channels", "telegram,discord,slack,terminal", "comma-separated: where people write, one after the other")
	asJSON := flag.Bool("json", false, "print the counts as JSON")
	flag.Parse()
	r.quiet = *asJSON
	if r.seed == 0 {
		r.seed = rand.Uint64()
	}
	if r.short {
		r.kills = min(r.kills, 10)
	}
	r.report.Seed = r.seed
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		homes.Range(func(h, _ any) bool {
			h.(*home).end()
			h.(*home).Platform.Close()
			return true
		})
		os.Exit(2)
	}()
	if err := r.all(*only, *channels); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(2)
	}
	if *asJSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		_ = out.Encode(r.report)
	} else {
		r.report.print()
	}
	if r.report.bad() {
		os.Exit(1)
	}
}

func (r *run) all(only, channels string) error {
	if r.binary == "" {
		if err := r.build(); err != nil {
			return err
		}
		defer os.Remove(r.binary) //nolint:errcheck // a temporary file
	}
	r.say("seed %d", r.seed)
	for channel := range strings.SplitSeq(channels, ",") {
		if channel != "terminal" && ledger.Platforms[channel] == nil {
			return fmt.Errorf("there is no channel %q: use telegram, discord, slack or terminal", channel)
		}
		r.channel = channel
		if err := r.parts(only); err != nil {
			return err
		}
	}
	return nil
}

// part names a part in the report.
func (r *run) part(name string) string {
	if r.channel == "telegram" {
		return name
	}
	return name + ", " + r.channel
}

// parts runs the parts with people who write in the channel.
func (r *run) parts(only string) error {
	for i, p := range parts {
		if only != "" && !slices.Contains(strings.Split(only, ","), p.name) || p.name == "soak" && r.soak == 0 {
			continue
		}
		r.say("## %s", r.part(p.name))
		// Each part has its own random numbers, independent of earlier parts.
		if err := p.run(r, rand.New(rand.NewPCG(r.seed, uint64(i)))); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (r *run) build() error {
	r.binary = filepath.Join(os.TempDir(), fmt.Sprintf("switchboard-faults-%d", os.Getpid()))
	build := exec.Command("go", "build", "-tags", "crashpoints", "-o", r.binary,
		"github.com/switchboard-run/switchboard/cmd/switchboard")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// say reports progress.
func (r *run) say(format string, args ...any) {
	if !r.quiet {
		fmt.Printf(format+"\n", args...)
	}
}
