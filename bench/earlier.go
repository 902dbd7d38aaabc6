package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/bench/processes"
)

// startsARound is how often each program is started in a round.
const startsARound = 5

// earlier compares the program with an earlier one, in turns, each on a home of its own:
// starts, memory at rest, messages.
func earlier(b *bench) error {
	if b.earlier == "" {
		return errors.New("name the other program with -earlier")
	}
	programs := [2]struct {
		name, binary                         string
		line, reply, startCPU, p50, cpu, pss []float64
		kernel                               []float64
	}{{name: "the earlier one", binary: b.earlier}, {name: "this one", binary: b.binary}}
	for range b.rounds {
		var beds [2]*bed
		for i := range programs {
			var err error
			if beds[i], err = newBed(); err != nil {
				return err
			}
			if err := errors.Join(beds[i].start(programs[i].binary), beds[i].warm(), beds[i].stop()); err != nil {
				return err // the first start creates the store
			}
		}
		for range startsARound {
			for i := range programs {
				p, d := &programs[i], beds[i]
				line, cpu, err := firstLine(d, p.binary)
				if err != nil {
					return err
				}
				d.say(1, "good morning")
				began := time.Now()
				if err := d.start(p.binary); err != nil {
					return err
				}
				if _, err := d.reply(context.Background()); err != nil {
					return err
				}
				p.reply = append(p.reply, inMs(time.Since(began)))
				p.line, p.startCPU = append(p.line, inMs(line)), append(p.startCPU, inMs(cpu))
				if err := d.stop(); err != nil {
					return err
				}
			}
		}
		for i := range programs {
			p, d := &programs[i], beds[i]
			if err := errors.Join(d.start(p.binary), d.warm()); err != nil {
				return err
			}
			m, err := pace(d, b.scale(500))
			if err != nil {
				return err
			}
			p.p50, p.cpu = append(p.p50, inMs(m.p50)), append(p.cpu, inMs(m.cpu))
			// Memory is that of a start with few messages.
			if err := errors.Join(d.stop(), d.start(p.binary), d.warm()); err != nil {
				return err
			}
			time.Sleep(rest + 10*time.Second) //nolint:forbidigo // measures idle processes
			kib, _ := d.pss()
			p.pss = append(p.pss, float64(kib)/1024)
			p.kernel = append(p.kernel, float64(processes.PSS(d.kernel.Process.Pid))/1024)
			d.close()
		}
	}
	mebibytes := func(f float64) string { return fmt.Sprintf("%.2f MiB", f) }
	for _, p := range programs {
		info, err := os.Stat(p.binary)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %.1f MiB; start to its first line %s, CPU of the kernel until it has ended %s; "+
			"to the first reply %s\n", p.name, float64(info.Size())/(1<<20), spread(p.line, inMilliseconds),
			spread(p.startCPU, inMilliseconds), spread(p.reply, inMilliseconds))
		fmt.Printf("%s: message to reply, p50 %s, CPU %s; memory at rest (PSS) %s, of the kernel's process %s\n", p.name,
			spread(p.p50, inMilliseconds), spread(p.cpu, inMilliseconds), spread(p.pss, mebibytes), spread(p.kernel, mebibytes))
	}
	return nil
}

// inMs is a time in milliseconds.
func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// firstLine starts a kernel, stops it, and returns the time to the line with which `run`
// reports that it runs, and the processor time of the kernel's process.
func firstLine(d *bed, binary string) (took, cpu time.Duration, err error) {
	cmd := exec.Command(binary, "run")
	cmd.Env = d.environ()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), " runs on ") {
	}
	took = time.Since(began)
	_ = cmd.Process.Signal(os.Interrupt)
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		return 0, 0, err
	}
	return took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}
