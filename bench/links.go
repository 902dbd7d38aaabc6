package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/home/consent/consenttest"
)

// peerAgent is the agent at the other end of the link.
const peerAgent = `api: 1
id: peer
name: The peer
version: 1.0.0
description: Knows the answer.
agent:
  model: default
  instructions: You are the peer.
`

// trip is one kind of round trip of a person's question over a link.
type trip struct {
	what, mode  string
	turns       int // of agents, one of them of the person's question
	completions int
	peer, chief func() openaitest.Answer
}

func concludes() openaitest.Answer {
	return openaitest.CallTool("links__conclude_link", map[string]string{"summary": "It is 42."})
}

func replies() openaitest.Answer { return openaitest.Answer{Text: "It is 42.", Pieces: 1} }

// The question is always one turn of the chief with a call and a final text, and the result
// another turn without a call.
var trips = []trip{
	{what: "message, reply, conclusion by the one who asked, result", mode: "conversation", turns: 4, completions: 5,
		peer: replies, chief: concludes},
	{what: "message, conclusion by the one who was asked, result", mode: "conversation", turns: 3, completions: 4,
		peer: concludes},
	{what: "message, final text as the result (mode task)", mode: "task", turns: 3, completions: 4, peer: replies},
}

// linkTrips compares a link round trip with a plain turn of its agent, on the same kernel.
func linkTrips(b *bench) error {
	n := b.scale(300)
	for _, way := range trips {
		var wall, cpu []float64
		for range min(b.rounds, 3) {
			plain, trip, err := b.linksOnce(way, n)
			if err != nil {
				return fmt.Errorf("%s: %w", way.what, err)
			}
			fmt.Printf("  round trip: %s (p99 %s), %s of CPU; plain turn: %s (p99 %s), %s of CPU\n", milliseconds(trip.p50),
				milliseconds(trip.p99), milliseconds(trip.cpu),
				milliseconds(plain.p50), milliseconds(plain.p99), milliseconds(plain.cpu))
			wall = append(wall, float64(trip.p50)/float64(plain.p50))
			cpu = append(cpu, float64(trip.cpu)/float64(plain.cpu))
		}
		fmt.Printf("%s: %d turns, %d completions\n", way.what, way.turns, way.completions)
		fmt.Println("a round trip beside a plain turn, p50:", spread(wall, times))
		fmt.Println("the same, CPU:", spread(cpu, times))
	}
	return nil
}

// linksOnce measures alternating blocks of plain turns and of round trips.
func (b *bench) linksOnce(way trip, n int) (plain, round paced, err error) {
	d, err := newBed()
	if err != nil {
		return plain, round, err
	}
	defer d.close()
	dir := filepath.Join(d.home, "extensions", "peer")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return plain, round, err
	}
	config := fmt.Sprintf("channels: {telegram_channel: {allow_from: [\"*\"]}}\nlinks: [{from: orchestrator, to: peer, "+
		"mode: %s}]\n", way.mode)
	for path, text := range map[string]string{filepath.Join(dir, "manifest.yaml"): peerAgent,
		filepath.Join(d.home, "config.yaml"): config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return plain, round, err
		}
	}
	d.model.Handle(way.answer)
	if err := errors.Join(consenttest.Allow(d.home, "peer", peerAgent), d.start(b.binary)); err != nil {
		return plain, round, err
	}
	if err := d.warm(); err != nil {
		return plain, round, err
	}
	for c := range pacedChats {
		d.telegram.AddChat(telegramtest.Chat{ID: int64(2 + c), Type: telegramtest.Private})
	}
	var both [2]struct {
		times []time.Duration
		cpu   time.Duration
	}
	const blocks = 6 // the first two are not counted
	for block := range blocks {
		kind := block % 2
		before := d.cpu()
		for i := range n / (blocks/2 - 1) {
			took, err := way.one(d, int64(2+i%pacedChats), kind == 1)
			if err != nil {
				return plain, round, err
			}
			if block >= 2 {
				both[kind].times = append(both[kind].times, took)
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the pace
		}
		if block >= 2 {
			both[kind].cpu += d.cpu() - before
		}
	}
	of := func(kind int) paced {
		t := both[kind].times
		return paced{median(t), quantile(t, 0.99), both[kind].cpu / time.Duration(len(t))}
	}
	return of(0), of(1), nil
}

const (
	askWord  = "ask the peer"
	backWord = "It came back: "
)

// one measures a message until its reply, and until the agents are idle.
func (w trip) one(d *bed, chat int64, ask bool) (took time.Duration, err error) {
	text, want, completions := "good morning", "Done.", 1
	if ask {
		text, want, completions = askWord, backWord, w.completions
	}
	asked := d.model.Total()
	began := time.Now()
	d.say(chat, text)
	for {
		m, err := d.reply(context.Background())
		if err != nil {
			return 0, err
		}
		if strings.HasPrefix(m.Text, want) {
			took = time.Since(began)
			break
		}
	}
	if err := until("the agents did not come to rest",
		func() bool { return d.model.Total()-asked >= completions }); err != nil {
		return 0, err
	}
	if got := d.model.Total() - asked; got != completions {
		return 0, fmt.Errorf("the model was asked %d times, not %d", got, completions)
	}
	return took, nil
}

func (w trip) answer(r openaitest.Request) openaitest.Answer {
	said := heard(r)
	done := openaitest.Answer{Text: "Done.", Pieces: 1}
	switch {
	case strings.HasPrefix(r.Messages[0].Content.Text, "You are the peer."):
		if len(r.Results()) > 0 {
			return done
		}
		return w.peer()
	case strings.HasPrefix(said, "[message from peer]"):
		if len(r.Results()) > 0 {
			return done
		}
		return w.chief()
	case strings.HasPrefix(said, "[result from peer]"):
		return openaitest.Answer{Text: backWord + "42.", Pieces: 1}
	case said == askWord && len(r.Results()) == 0:
		return openaitest.CallTool("links__send_agent_message",
			map[string]string{"target": "peer", "message": "What is six times seven?"})
	}
	return done
}
