package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// startToReply measures the time from the start of the kernel's process to its first reply,
// to a message that waits at the platform, and the processor time of all processes until
// then.
func startToReply(b *bench) error {
	var times, cpu []time.Duration
	for range b.rounds {
		d, err := newBed()
		if err != nil {
			return err
		}
		// The first start creates the store; the second one is measured.
		for attempt := range 2 {
			d.say(1, "good morning")
			began := time.Now()
			if err := d.start(b.binary); err != nil {
				return err
			}
			if _, err := d.reply(context.Background()); err != nil {
				return err
			}
			if attempt > 0 {
				times = append(times, time.Since(began))
				cpu = append(cpu, d.cpu())
			}
			if err := d.stop(); err != nil {
				return err
			}
		}
		d.close()
	}
	fmt.Println("start to first reply:", spread(times, milliseconds))
	fmt.Println("CPU until then:", spread(cpu, milliseconds))
	return nil
}

// rest is the idle time before a measurement.
const rest = 3 * time.Second

// idle measures memory and processor time without messages.
func idle(b *bench) error {
	var memory []int64
	var load []float64
	processes := 0
	for range min(b.rounds, 3) {
		d, err := b.warmBed()
		if err != nil {
			return err
		}
		time.Sleep(rest) //nolint:forbidigo // measures an idle process
		before, began := d.cpu(), time.Now()
		time.Sleep(10 * time.Second) //nolint:forbidigo // likewise
		load = append(load, float64(d.cpu()-before)/float64(time.Since(began))*100)
		kib, n := d.pss()
		memory, processes = append(memory, kib), n
		d.close()
	}
	fmt.Printf("idle memory (PSS) of %d processes: %s\n", processes,
		spread(memory, func(k int64) string { return fmt.Sprintf("%.1f MiB", float64(k)/1024) }))
	fmt.Printf("idle CPU: %s\n", spread(load, func(f float64) string { return fmt.Sprintf("%.2f %% of a core", f) }))
	return nil
}

// paced measures the cost of one message until its reply, at a low rate.
type paced struct {
	p50, p99, cpu time.Duration
}

// pacedChats keeps conversations short: another measurement is about long ones.
const pacedChats = 50

// firstChat is the first of the chats that paced messages come from.
const firstChat = 2

func pace(d *bed, n int) (paced, error) {
	chats := cmp.Or(d.chats, pacedChats)
	for c := range chats {
		d.telegram.AddChat(telegramtest.Chat{ID: int64(firstChat + c), Type: telegramtest.Private})
	}
	times := make([]time.Duration, 0, n)
	before := d.cpu()
	for i := range n {
		began := time.Now()
		d.say(int64(firstChat+i%chats), fmt.Sprint("message ", i))
		if _, err := d.reply(context.Background()); err != nil {
			return paced{}, err
		}
		times = append(times, time.Since(began))
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the pace
	}
	return paced{median(times), quantile(times, 0.99), (d.cpu() - before) / time.Duration(n)}, nil
}

// latency measures one message until its reply, with a model that answers at once.
func latency(b *bench) error {
	var p50, p99, cpu []time.Duration
	for range b.rounds {
		d, err := b.warmBed()
		if err != nil {
			return err
		}
		p, err := pace(d, b.scale(500))
		if err != nil {
			return err
		}
		p50, p99, cpu = append(p50, p.p50), append(p99, p.p99), append(cpu, p.cpu)
		d.close()
	}
	fmt.Println("message to reply, p50:", spread(p50, milliseconds))
	fmt.Println("message to reply, p99:", spread(p99, milliseconds))
	fmt.Println("CPU of all processes per message:", spread(cpu, milliseconds))
	return nil
}

// crowd writes in each of several chats as soon as it is answered.
func crowd(d *bed, chats, messages int) (perSecond float64, cpu time.Duration, err error) {
	for c := range chats {
		d.telegram.AddChat(telegramtest.Chat{ID: int64(100 + c), Type: telegramtest.Private})
	}
	before, began := d.cpu(), time.Now()
	sent := 0
	for c := range min(chats, messages) {
		d.say(int64(100+c), "first")
		sent++
	}
	for range messages {
		m, err := d.reply(context.Background())
		if err != nil {
			return 0, 0, err
		}
		if sent < messages {
			d.say(m.Chat, "next")
			sent++
		}
	}
	took := time.Since(began)
	return float64(messages) / took.Seconds(), (d.cpu() - before) / time.Duration(messages), nil
}

func throughput(b *bench) error {
	for _, chats := range []int{16, 256} {
		var rates []float64
		var cpu []time.Duration
		for range b.rounds {
			d, err := b.warmBed()
			if err != nil {
				return err
			}
			rate, spent, err := crowd(d, chats, b.scale(5000))
			if err != nil {
				return err
			}
			rates, cpu = append(rates, rate), append(cpu, spent)
			d.close()
		}
		fmt.Printf("%d chats: %s replies, CPU per message %s\n", chats, spread(rates, perSecond), spread(cpu, milliseconds))
	}
	return nil
}

// longChat measures the cost of a message in one chat as the conversation grows.
func longChat(b *bench) error {
	marks := []int{100, 1000, 10_000}
	if b.quick {
		marks = marks[:2]
	}
	rates := make([][]float64, len(marks))
	for range min(b.rounds, 3) {
		d, err := b.warmBed()
		if err != nil {
			return err
		}
		const window = 100
		began := time.Now()
		for i, mark := 1, 0; mark < len(marks); i++ {
			if i == marks[mark]-window+1 {
				began = time.Now()
			}
			d.say(1, fmt.Sprint("message ", i))
			if _, err := d.reply(context.Background()); err != nil {
				return err
			}
			if i == marks[mark] {
				rates[mark] = append(rates[mark], window/time.Since(began).Seconds())
				mark++
			}
		}
		d.close()
	}
	for i, mark := range marks {
		fmt.Printf("one chat back to back, up to message %d: %s\n", mark, spread(rates[i], perSecond))
	}
	return nil
}
