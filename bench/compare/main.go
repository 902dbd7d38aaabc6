// Command compare measures Switchboard's bus and other durable queues on one machine, in one
// run. README.md has the method and the results.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// system is one measured system.
type system struct {
	name string
	run  func(o options) (figures, error)
}

// options configure a measurement.
type options struct {
	dir        string // an empty directory for this measurement
	binary     string // of Switchboard
	publishers int
	warm, span time.Duration
}

var systems = []system{
	{"bus", inProcess(openBus)},
	{"extensions", runExtensions},
	{"river", inProcess(openRiver)},
	{"jetstream-sync", inProcess(openSyncedJetStream)},
	{"jetstream", inProcess(openJetStream)},
	{"gochannel", inProcess(openGoChannel)},
}

// base is the system that the ratios compare to.
const base = "bus"

func main() {
	if len(os.Args) > 2 && os.Args[1] == "extension" {
		serve(os.Args[2:])
		return
	}
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare() (err error) {
	var names []string
	for _, s := range systems {
		names = append(names, s.name)
	}
	var o options
	only := flag.String("only", strings.Join(names, ","), "comma-separated systems")
	publishers := flag.String("publishers", "1,16,256", "comma-separated numbers of publishers")
	rounds := flag.Int("rounds", 5, "rounds; the median counts")
	dir := flag.String("dir", os.TempDir(), "where the stores are: a directory on the disk that is meant")
	flag.DurationVar(&o.warm, "warm", 500*time.Millisecond, "duration of the uncounted warm-up")
	flag.DurationVar(&o.span, "span", 2*time.Second, "how long is published")
	flag.StringVar(&o.binary, "binary", "", "the switchboard binary; empty: build it")
	flag.Parse()
	counts, err := numbers(*publishers)
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp(*dir, "sbc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	chosen := slices.DeleteFunc(slices.Clone(systems), func(s system) bool {
		return !slices.Contains(strings.Split(*only, ","), s.name)
	})
	if o.binary == "" && slices.ContainsFunc(chosen, func(s system) bool { return s.name == "extensions" }) {
		if o.binary, err = build(home); err != nil {
			return err
		}
	}
	seen := map[string][]figures{}
	for round := range *rounds {
		for _, n := range counts {
			for _, s := range chosen {
				o := o
				o.publishers = n
				if o.dir, err = os.MkdirTemp(home, "r"); err != nil {
					return err
				}
				f, err := s.run(o)
				if err != nil {
					return fmt.Errorf("%s with %d publishers: %w", s.name, n, err)
				}
				fmt.Fprintf(os.Stderr, "round %d, %d publishers, %s: %s\n", round+1, n, s.name, f)
				key := fmt.Sprint(s.name, n)
				seen[key] = append(seen[key], f)
				if err := os.RemoveAll(o.dir); err != nil {
					return err
				}
			}
		}
	}
	for _, n := range counts {
		table(n, chosen, seen)
	}
	return nil
}

// build builds the binary in its own module, with its versions.
func build(home string) (binary string, err error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/switchboard-run/switchboard").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the repository: %w", err)
	}
	binary = filepath.Join(home, "switchboard")
	build := exec.Command("go", "build", "-o", binary, "./cmd/switchboard")
	build.Dir, build.Stderr = strings.TrimSpace(string(root)), os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building switchboard: %w", err)
	}
	return binary, nil
}

// table prints the medians for one number of publishers.
func table(publishers int, systems []system, seen map[string][]figures) {
	fmt.Printf("| %d publishers | events/s (smallest to largest) | %s is | accepted p50, p99 | handled p50, p99 | CPU "+
		"per event |\n| --- | --- | --- | --- | --- | --- |\n", publishers, base)
	for _, s := range systems {
		of := seen[fmt.Sprint(s.name, publishers)]
		rates := column(of, func(f figures) float64 { return f.Rate })
		times := "-"
		if reference := seen[fmt.Sprint(base, publishers)]; len(reference) > 0 && s.name != base {
			var ratios []float64 // within each round, which shares the load of the machine
			for i := range of {
				ratios = append(ratios, reference[i].Rate/of[i].Rate)
			}
			times = fmt.Sprintf("%.1f times", median(ratios))
		}
		at := func(of []figures, value func(figures) time.Duration) string {
			return fmt.Sprintf("%.2f", median(column(of, value)).Seconds()*1000)
		}
		fmt.Printf("| %s | %.0f (%.0f to %.0f) | %s | %s, %s ms | %s, %s ms | %.0f µs |\n", s.name, median(rates),
			slices.Min(rates), slices.Max(rates), times,
			at(of, func(f figures) time.Duration { return f.Accepted.P50 }),
			at(of, func(f figures) time.Duration { return f.Accepted.P99 }),
			at(of, func(f figures) time.Duration { return f.Handled.P50 }),
			at(of, func(f figures) time.Duration { return f.Handled.P99 }),
			median(column(of, func(f figures) time.Duration { return f.CPU })).Seconds()*1e6)
	}
	fmt.Println()
}

func column[T any](of []figures, value func(figures) T) (values []T) {
	for _, f := range of {
		values = append(values, value(f))
	}
	return values
}

func numbers(list string) (n []int, err error) {
	for field := range strings.SplitSeq(list, ",") {
		i, err := strconv.Atoi(field)
		if err != nil || i < 1 {
			return nil, fmt.Errorf("-publishers %s: %q is no number of publishers", list, field)
		}
		n = append(n, i)
	}
	return n, nil
}
