package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

var onlyHarm = flag.String("harm", "", "of hostile, the only one")

// hostile compares paced messages while an extension does harm with those while it is idle,
// in alternating blocks on one kernel.
func hostile(b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, h := range harms {
		if *onlyHarm != "" && *onlyHarm != h.name {
			continue
		}
		var p50, p99, cpu []float64
		for range min(b.rounds, 3) {
			d, err := newBed()
			if err != nil {
				return err
			}
			calm, harmed, err := d.beside(b, self, h)
			if err != nil {
				return fmt.Errorf("%s: %w", h.name, errors.Join(err, d.kernelSays()))
			}
			p50 = append(p50, float64(median(harmed.times))/float64(median(calm.times)))
			p99 = append(p99, float64(quantile(harmed.times, 0.99))/float64(quantile(calm.times, 0.99)))
			cpu = append(cpu, float64(harmed.cpu)/float64(calm.cpu))
			d.close()
		}
		fmt.Printf("%-12s p50 %s, p99 %s; CPU of the other extensions %s\n", h.name, spread(p50, times), spread(p99, times),
			spread(cpu, times))
	}
	return nil
}

// kernelSays returns the kernel's last log line about the extension.
func (d *bed) kernelSays() error {
	text, _ := os.ReadFile(filepath.Join(d.home, "logs", "kernel.log"))
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"),
		func(l string) bool { return !strings.Contains(l, `"harm"`) })
	return errors.New(strings.Join(lines[max(0, len(lines)-3):], "\n"))
}

// stretch has the latencies of messages, and the processor time of all extensions except the
// harmful one.
type stretch struct {
	times []time.Duration
	cpu   time.Duration
}

const (
	harmBlocks   = 8
	harmMessages = 40
	// harmSettles is the time for a harm to begin or to end.
	harmSettles = 1500 * time.Millisecond
)

// beside starts the kernel with the extension, and measures.
func (d *bed) beside(b *bench, self string, h harm) (calm, harmed stretch, err error) {
	dir, data := filepath.Join(d.home, "extensions", "harm"), filepath.Join(d.home, "data", "harm")
	text := fmt.Sprintf("api: 1\nid: harm\nname: Harm\nversion: 1.0.0\nrun: {command: %q, args: [extension, harm, %s]}\n"+
		"permissions: {publish: [harm.noise]}\n", self, h.name)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.MkdirAll(data, 0o700),
		os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600)); err != nil {
		return calm, harmed, err
	}
	for c := range pacedChats {
		d.telegram.AddChat(telegramtest.Chat{ID: int64(2 + c), Type: telegramtest.Private})
	}
	if err := errors.Join(d.start(b.binary), d.warm()); err != nil {
		return calm, harmed, err
	}
	for range max(b.scale(harmBlocks), 4) {
		if err := d.stretch(&calm); err != nil {
			return calm, harmed, err
		}
		if err := os.WriteFile(filepath.Join(data, harmOn), nil, 0o600); err != nil {
			return calm, harmed, err
		}
		time.Sleep(harmSettles) //nolint:forbidigo // until it has begun
		err := d.stretch(&harmed)
		if err := errors.Join(err, os.Remove(filepath.Join(data, harmOn))); err != nil {
			return calm, harmed, err
		}
		time.Sleep(harmSettles) //nolint:forbidigo // until it rests
	}
	return calm, harmed, nil
}

func (d *bed) stretch(b *stretch) error {
	before := d.cpuOfOthers()
	for i := range harmMessages {
		began := time.Now()
		d.say(int64(2+(len(b.times)+i)%pacedChats), fmt.Sprint("message ", i))
		if _, err := d.reply(context.Background()); err != nil {
			return err
		}
		b.times = append(b.times, time.Since(began))
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the pace
	}
	b.cpu += d.cpuOfOthers() - before
	return nil
}

// cpuOfOthers returns the processor time of all extensions except the harmful one.
func (d *bed) cpuOfOthers() (total time.Duration) {
	harmful := map[int]bool{}
	for _, pid := range d.tree()[1:] {
		stat, _ := processes.StatOf(pid)
		if harmful[pid] = harmful[stat.Parent] || strings.Contains(processes.Command(pid), "extension harm"); !harmful[pid] {
			total += cpuOf(pid)
		}
	}
	return total
}
