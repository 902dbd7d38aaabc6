// Command cluster runs several kernels on one PostgreSQL, harms them, PostgreSQL and the way
// between them while they do their main job, and counts what people saw of it. README.md
// has the method and the results.
//
// The exit status is 1 if anything was lost or done twice, and 2 if the measurement failed.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/servers"
)

// run is one run of the command.
type run struct {
	seed     uint64
	binary   string // built with crash points
	release  string // as it is released
	short    bool
	instants int
	rounds   int
	keep     bool
	like     string // part of the names of scenes

	mu       sync.Mutex
	rows     []*row
	problems []string
}

// parts in their order.
var parts = []struct {
	name string
	run  func(*run, *rand.Rand) error
}{
	{"spoiled", spoiled},
	{"scenes", scenes},
	{"commits", commits},
	{"instants", instants},
	{"takeovers", takeovers},
	{"backlog", backlog},
	{"cells", cells},
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "extension":
			ledger.ServeShop(false)
			return
		case kvArgument:
			serveKV()
			return
		case backlogArgument:
			serveBacklog()
			return
		}
	}
	r := &run{}
	flag.StringVar(&r.binary, "binary", "", "a switchboard binary built with -tags crashpoints; empty: build it")
	flag.StringVar(&r.release, "release", "", "a switchboard binary for the figures; empty: build it")
	flag.Uint64Var(&r.seed, "seed", 0, "repeats the choices of a run; 0: a new one")
	flag.BoolVar(&r.short, "short", false, "a look that takes about a minute")
	flag.IntVar(&r.instants, "instants", 500, "how often something is harmed at a random instant")
	flag.IntVar(&r.rounds, "rounds", 5, "rounds of each measurement; the median counts")
	flag.BoolVar(&r.keep, "keep", false, "keep the homes")
	flag.StringVar(&r.like, "like", "", "only the scenes, faults and interruptions whose names hold this")
	only := flag.String("only", "", "comma-separated: spoiled,scenes,commits,instants,takeovers,backlog,cells; "+
		"empty: those that count losses")
	flag.Parse()
	if r.seed == 0 {
		r.seed = rand.Uint64()
	}
	if *only == "" {
		*only = "spoiled,scenes,commits,instants"
	}
	if r.short {
		r.instants = min(r.instants, 9)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		servers.EndAll()
		os.Exit(2)
	}()
	if err := r.all(*only); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(2)
	}
	if r.print() > 0 {
		os.Exit(1)
	}
}

func (r *run) all(only string) error {
	fmt.Println("seed", r.seed)
	for i, p := range parts {
		if !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		if err := r.build(i < measurements); err != nil {
			return err
		}
		fmt.Printf("## %s\n", p.name)
		// Each part has its own random numbers, independent of earlier parts.
		if err := p.run(r, rand.New(rand.NewPCG(r.seed, uint64(i)))); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// measurements is the number of parts that count losses; the others measure.
const measurements = 4

// build builds the binary that a part needs, once.
func (r *run) build(crashpoints bool) error {
	binary, tags := &r.release, ""
	if crashpoints {
		binary, tags = &r.binary, "crashpoints"
	}
	if *binary != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "switchboard-cluster")
	if err != nil {
		return err
	}
	*binary = filepath.Join(dir, "switchboard")
	build := exec.Command("go", "build", "-tags", tags, "-o", *binary,
		"github.com/switchboard-run/switchboard/cmd/switchboard")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	return build.Run()
}

// row is one line of the table of losses.
type row struct {
	what string
	ledger.Counts
	figures
	wrong int // checks that failed
	told  int // times that a node told of lost commits
	took  time.Duration
}

// add adds counts to the row of what was harmed.
func (r *run) add(what string, c ledger.Counts, f figures, problems []string, told int, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.rows, func(o *row) bool { return o.what == what })
	if i < 0 {
		i = len(r.rows)
		r.rows = append(r.rows, &row{what: what})
	}
	o := r.rows[i]
	o.Add(c)
	o.Entries += f.Entries
	o.Takeovers += f.Takeovers
	o.Operations += f.Operations
	o.wrong += max(0, len(problems)-c.Losses())
	o.told += told
	o.took += took
	for _, p := range problems {
		fmt.Println("-", what+":", p)
		r.problems = append(r.problems, what+": "+p)
	}
}

// print prints the table and returns the number of failures.
func (r *run) print() (failed int) {
	if len(r.rows) == 0 {
		return 0
	}
	var total row
	line := func(what string, o *row) {
		fmt.Printf("%-52s %6d %8d %8d %8d %8d %8d %8d %8d %8d %6.1f s %7.0f s\n", what, o.Kills, o.Messages, o.lost(),
			o.twice(), o.wrong, o.Marked, o.told, o.Takeovers, o.Operations, o.Latest, o.took.Seconds())
	}
	fmt.Printf("%-52s %6s %8s %8s %8s %8s %8s %8s %8s %8s %8s %9s\n", "harm", "times", "messages", "lost", "twice", "checks",
		"| marked", "told", "owners", "kv ops", "latest", "took")
	for _, o := range r.rows {
		line(o.what, o)
		total.Add(o.Counts)
		total.wrong += o.wrong
		total.told += o.told
		total.Takeovers += o.Takeovers
		total.Operations += o.Operations
		total.took += o.took
	}
	line("all", &total)
	for _, p := range r.problems {
		fmt.Println("-", p)
	}
	failed = total.Losses() + total.wrong
	fmt.Printf("seed %d: %d faults, %d messages, %d lost or done twice, %d checks failed\n", r.seed, total.Kills,
		total.Messages, total.Losses(), total.wrong)
	return failed
}

func (o *row) lost() int {
	return o.Unanswered + o.SendsLost + o.RemindersMissed + o.EventsStuck + o.Dead
}

func (o *row) twice() int { return o.Losses() - o.lost() }
