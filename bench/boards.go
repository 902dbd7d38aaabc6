package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// openBoards is how many pages follow the board at once.
const openBoards = 200

// boards measures what pages that are open on the live board cost while people write over
// Telegram: none, one, and many.
func boards(b *bench) error {
	counts := []int{0, 1, openBoards}
	p50, cpu := make([][]time.Duration, len(counts)), make([][]time.Duration, len(counts))
	memory, updates := make([]int64, len(counts)), make([]int64, len(counts))
	for range b.rounds {
		d, s, err := b.bedWithBoard()
		if err != nil {
			return err
		}
		for i, n := range counts {
			seen, pages, err := s.watched(d, n, b.scale(1000))
			if err != nil {
				d.close()
				return err
			}
			p50[i], cpu[i] = append(p50[i], seen.p50), append(cpu[i], seen.cpu)
			memory[i], updates[i] = max(memory[i], pages.kib), max(updates[i], pages.updates)
		}
		d.close()
	}
	for i, n := range counts {
		fmt.Printf("%d boards open: message to reply, p50 %s, CPU of all processes per message %s; most memory %.1f MiB; "+
			"%d updates sent\n",
			n, spread(p50[i], milliseconds), spread(cpu[i], milliseconds), float64(memory[i])/1024, updates[i])
	}
	return nil
}

// bedWithBoard is a warm bed with Telegram and the web channel, and a browser that is logged in.
func (b *bench) bedWithBoard() (d *bed, s *site, err error) {
	if d, err = newBed(); err != nil {
		return nil, nil, err
	}
	s, w, err := newSite(nil)
	if err != nil {
		return nil, nil, err
	}
	config := "channels: {telegram_channel: {allow_from: [\"*\"]}}\nextensions: {web_channel: " + w.settings + "}\n"
	for _, step := range []func() error{
		func() error { return os.WriteFile(filepath.Join(d.home, "config.yaml"), []byte(config), 0o600) },
		func() error { return d.start(b.binary) }, d.warm, func() error { return s.login(d) },
	} {
		if err := step(); err != nil {
			s.stop()
			d.close()
			return nil, nil, err
		}
	}
	return d, s, nil
}

// pages is what open pages took.
type pages struct{ kib, updates int64 }

// watched has n pages follow the board while people write.
func (s *site) watched(d *bed, n, messages int) (seen paced, p pages, err error) {
	var updates atomic.Int64
	var all []io.Closer
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	for range n {
		q, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.base+"/live/board", nil)
		if err != nil {
			return seen, p, err
		}
		answer, err := s.Do(q) //nolint:bodyclose // closed when the measurement ends
		if err != nil {
			return seen, p, err
		}
		all = append(all, answer.Body)
		if answer.StatusCode != http.StatusOK {
			return seen, p, fmt.Errorf("the live board answers %s", answer.Status)
		}
		go count(answer.Body, &updates)
	}
	if seen, err = pace(d, messages); err != nil {
		return seen, p, err
	}
	p.kib, _ = d.pss()
	p.updates = updates.Load()
	return seen, p, nil
}

// count counts the events of a stream until it ends.
func count(stream io.Reader, events *atomic.Int64) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for data := false; lines.Scan(); {
		switch {
		case strings.HasPrefix(lines.Text(), "data:"):
			data = true
		case data && lines.Text() == "":
			events.Add(1)
			data = false
		}
	}
}
