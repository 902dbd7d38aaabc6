package main

import (
	"fmt"
	"path/filepath"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
)

// rounds compares a turn with two rounds of a tool, three completions, with a
// plain one.
func rounds(b *bench) error {
	after := func(tools int) func(*bed) error {
		return func(d *bed) error {
			d.model.Handle(func(r openaitest.Request) openaitest.Answer {
				if roundsOf(r) < tools {
					return openaitest.CallTool("list_channels", "{}")
				}
				return openaitest.Answer{Text: "Done.", Pieces: 1}
			})
			return nil
		}
	}
	return b.beside("a turn with two rounds of a tool beside a plain one", b.rounds, after(0), after(2))
}

// roundsOf counts the answers with calls after the user's last message.
func roundsOf(r openaitest.Request) (n int) {
	for _, m := range r.Messages {
		switch {
		case m.Role == "user":
			n = 0
		case len(m.ToolCalls) > 0:
			n++
		}
	}
	return n
}

// history compares conversations with many stored messages with new ones.
func history(b *bench) error {
	rows := b.scale(10_000)
	return b.beside(fmt.Sprintf("in chats of %d stored messages beside new ones", rows), min(b.rounds, 3),
		func(*bed) error { return nil },
		func(d *bed) error { return fillChats(filepath.Join(d.home, "switchboard.db"), rows) })
}

// beside compares paced messages on two differently prepared beds, and prints the ratio of
// the second to the first.
func (b *bench) beside(what string, rounds int, prepare ...func(*bed) error) error {
	var p50, cpu []float64
	for range rounds {
		seen := make([]paced, len(prepare))
		for i, ready := range prepare {
			d, err := newBed()
			if err != nil {
				return err
			}
			if err := ready(d); err != nil {
				return err
			}
			if err := d.start(b.binary); err != nil {
				return err
			}
			if err := d.warm(); err != nil {
				return err
			}
			if seen[i], err = pace(d, b.scale(500)); err != nil {
				return err
			}
			d.close()
		}
		p50 = append(p50, float64(seen[1].p50)/float64(seen[0].p50))
		cpu = append(cpu, float64(seen[1].cpu)/float64(seen[0].cpu))
	}
	fmt.Printf("%s, p50: %s\n", what, spread(p50, times))
	fmt.Println("the same, CPU:", spread(cpu, times))
	return nil
}
