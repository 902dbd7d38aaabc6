// Command bench measures Switchboard from the outside: the real binary, its extensions as
// processes, and servers on loopback that speak the real protocols. README.md has the method
// and the results.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// measurements in the order in which they run.
var measurements = []struct {
	name string
	run  func(*bench) error
}{
	{"start", startToReply},
	{"idle", idle},
	{"weight", weight},
	{"grown", grown},
	{"latency", latency},
	{"throughput", throughput},
	{"long", longChat},
	{"bus", busLoad},
	{"stored", stored},
	{"requests", requests},
	{"rounds", rounds},
	{"history", history},
	{"resume", resume},
	{"tasks", taskLoad},
	{"links", linkTrips},
	{"inbox", fullInbox},
	{"channels", channels},
	{"web", web},
	{"boards", boards},
	{"browser", browser},
	{"photos", photos},
	{"household", household},
	{"tools", toolCalls},
	{"installed", installed},
	{"hostile", hostile},
	{"cluster", cluster},
	{"earlier", earlier},
}

func main() {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "extension":
		serveLoad(os.Args[2:])
		return
	case len(os.Args) > 2 && os.Args[1] == "mcp":
		serveMCP(os.Args[2])
		return
	}
	b := &bench{}
	flag.StringVar(&b.binary, "binary", "", "the switchboard binary; empty: build it")
	flag.StringVar(&b.earlier, "earlier", "", "another switchboard binary, for the part of this name")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of each measurement; the median counts")
	flag.IntVar(&b.stored, "stored", 10_000_000,
		"settled events of the store of stored; each takes about 400 bytes in /tmp")
	flag.BoolVar(&b.quick, "quick", false, "less of everything, for a look")
	only := flag.String("only", "", "comma-separated: "+
		"start,idle,weight,grown,latency,throughput,long,bus,stored,requests,rounds,history,resume,tasks,links,inbox,"+
		"channels,web,boards,browser,photos,household,tools,installed,hostile,cluster,earlier")
	flag.Parse()
	if err := b.all(*only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) all(only string) error {
	if b.binary == "" {
		if err := b.build(); err != nil {
			return err
		}
		defer os.Remove(b.binary) //nolint:errcheck // a temporary file
	}
	for _, m := range measurements {
		if only == "" && m.name == "earlier" && b.earlier == "" {
			continue
		}
		if only != "" && !slices.Contains(strings.Split(only, ","), m.name) {
			continue
		}
		fmt.Printf("## %s\n", m.name)
		if err := m.run(b); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Println()
	}
	return nil
}
