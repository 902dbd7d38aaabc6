package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// What a home may have installed beside what it uses.
const (
	manyExtensions = 60  // that are disabled
	manyTools      = 100 // of an MCP server that does not run
	manyStarts     = 5   // of each home
)

// installed compares homes with many extensions or tools with one without: the start, and
// what a message costs that uses none of them.
func installed(b *bench) error {
	homes := []struct {
		name string
		add  func(*bed) error
		all  []cost
	}{
		{name: "nothing", add: func(*bed) error { return nil }},
		{name: fmt.Sprintf("%d extensions that are disabled", manyExtensions), add: withDisabled},
		{
			name: fmt.Sprintf("%d tools of an MCP server that does not run", manyTools),
			add:  func(d *bed) error { return d.withTools(b.binary) },
		},
	}
	for range b.rounds {
		for i := range homes {
			d, err := newBed()
			if err != nil {
				return err
			}
			if err := homes[i].add(d); err != nil {
				return err
			}
			c, err := d.costs(b)
			if err != nil {
				return err
			}
			homes[i].all = append(homes[i].all, c)
			d.close()
		}
	}
	without := homes[0].all
	for _, h := range homes {
		var start, startCPU, p50, cpu, memory []float64
		var bytes []int64
		for i, c := range h.all {
			start = append(start, float64(c.start)/float64(without[i].start))
			startCPU = append(startCPU, float64(c.startCPU)/float64(without[i].startCPU))
			p50 = append(p50, float64(c.p50)/float64(without[i].p50))
			cpu = append(cpu, float64(c.cpu)/float64(without[i].cpu))
			memory = append(memory, float64(c.pss)/1024)
			bytes = append(bytes, c.bytes)
		}
		fmt.Printf("with %s beside without: start to first reply %s, CPU until then %s; message to reply, p50 %s, CPU %s\n",
			h.name, spread(start, times), spread(startCPU, times), spread(p50, times), spread(cpu, times))
		fmt.Printf("the first request of a chat %s; memory (PSS) %s\n",
			spread(bytes, func(n int64) string { return fmt.Sprintf("%d bytes", n) }),
			spread(memory, func(f float64) string { return fmt.Sprintf("%.1f MiB", f) }))
	}
	return nil
}

// withDisabled drops disabled extensions in.
func withDisabled(d *bed) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	config := strings.Builder{}
	for i := range manyExtensions {
		id := fmt.Sprintf("installed_%d", i)
		fmt.Fprintf(&config, "  %s: {enabled: false}\n", id)
		lines := fmt.Sprintf("run: {command: %q, args: [extension, plain]}\nprovides: {tools: true}\n", self)
		if err := d.dropIn(id, lines); err != nil {
			return err
		}
	}
	return d.configure("extensions:\n" + config.String())
}

// withTools gives a bed an MCP server that has described its tools.
func (d *bed) withTools(binary string) error {
	for _, step := range []func() error{
		func() error { return d.withServer(manyTools, "") },
		func() error { return d.start(binary) }, d.warm, func() error { return d.offers(binary) }, d.stop,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// cost is what a home costs.
type cost struct {
	start, startCPU, p50, cpu time.Duration
	pss, bytes                int64
}

// costs measures a home. Its first start creates the store and does not count.
func (d *bed) costs(b *bench) (c cost, err error) {
	var start, startCPU []time.Duration
	for i := range 1 + max(b.scale(manyStarts), 2) {
		if err := d.stop(); err != nil {
			return c, err
		}
		d.say(1, "good morning")
		began := time.Now()
		if err := d.start(b.binary); err != nil {
			return c, err
		}
		if _, err := d.reply(context.Background()); err != nil {
			return c, err
		}
		if i > 0 {
			start, startCPU = append(start, time.Since(began)), append(startCPU, d.cpu())
		}
	}
	c.start, c.startCPU = median(start), median(startCPU)
	if err := d.warm(); err != nil {
		return c, err
	}
	p, err := pace(d, b.scale(500))
	if err != nil {
		return c, err
	}
	c.p50, c.cpu = p.p50, p.cpu
	d.say(firstChat+pacedChats, "hi")
	if _, err := d.reply(context.Background()); err != nil {
		return c, err
	}
	c.bytes = int64(len(d.model.Requests()[0].Raw))
	time.Sleep(rest) //nolint:forbidigo // measures idle processes
	c.pss, _ = d.pss()
	return c, nil
}
