package main

import (
	"fmt"
	"time"
)

// afterWork is the idle time before memory is measured: it is returned after work, and again
// two minutes later.
const afterWork = 150 * time.Second

// grown measures the idle memory after a start, and after many messages.
func grown(b *bench) error {
	d, err := b.warmBed()
	if err != nil {
		return err
	}
	defer d.close()
	time.Sleep(afterWork) //nolint:forbidigo // measures an idle process
	before, _ := d.pss()
	messages := b.scale(100_000)
	rate, cpu, err := crowd(d, 256, messages)
	if err != nil {
		return err
	}
	time.Sleep(afterWork) //nolint:forbidigo // likewise
	after, processes := d.pss()
	mib := func(kib int64) float64 { return float64(kib) / 1024 }
	fmt.Printf("idle memory (PSS) of %d processes before and after %d messages: %.1f MiB, %.1f MiB (%s); %.0f "+
		"replies/s, CPU per message %s\n",
		processes, messages, mib(before), mib(after), times(float64(after)/float64(before)), rate, milliseconds(cpu))
	return weigh(d)
}
