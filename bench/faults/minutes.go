package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/bench/ledger"
	"github.com/switchboard-run/switchboard/bench/processes"
)

// use is the resource usage of a home: the memory of each process in MiB, by name, and the
// size of the store.
type use struct {
	pss   map[string]float64
	store float64
}

func (u use) total() (mib float64) {
	for _, v := range u.pss {
		mib += v
	}
	return mib
}

// use measures the kernel and its descendants, except the idle processes of the shop.
func (h *home) use(kernel int) use {
	u := use{pss: map[string]float64{"kernel": mib(kernel)}}
	for _, p := range processes.Below(kernel) {
		if !ledger.Idle(p) {
			u.pss[shortly(p.Command)] += mib(p.PID)
		}
	}
	for _, name := range []string{"switchboard.db", "switchboard.db-wal"} {
		if info, err := os.Stat(h.file(name)); err == nil {
			u.store += float64(info.Size()) / (1 << 20)
		}
	}
	return u
}

func mib(pid int) float64 { return float64(processes.PSS(pid)) / 1024 }

// minute has the figures of one minute of the soak.
type minute struct {
	Minute   int                `json:"minute"`
	Messages int                `json:"messages"` // written in this minute, and answered
	P50      float64            `json:"p50_ms"`
	P99      float64            `json:"p99_ms"`
	Slowest  float64            `json:"slowest_ms"`
	PSS      float64            `json:"pss_mib"` // median
	By       map[string]float64 `json:"pss_mib_by_process"`
	Store    float64            `json:"store_mib"`
	Kills    int                `json:"kills"`
}

func (m minute) String() string {
	var by []string
	for _, name := range slices.Sorted(maps.Keys(m.By)) {
		by = append(by, fmt.Sprintf("%s %.1f", name, m.By[name]))
	}
	return fmt.Sprintf("minute %d: %d messages, p50 %.1f ms, p99 %.1f, slowest %.0f; PSS %.1f MiB (%s); store %.1f MiB; "+
		"%d kills",
		m.Minute, m.Messages, m.P50, m.P99, m.Slowest, m.PSS, strings.Join(by, ", "), m.Store, m.Kills)
}

// minutes has the figures of each minute, also of an incomplete one.
func (l *load) minutes(began time.Time, of time.Duration) (all []minute) {
	for n := 0; time.Duration(n)*time.Minute < of; n++ {
		all = append(all, l.minute(began, n))
	}
	return all
}

func (l *load) minute(began time.Time, n int) minute {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := began.Add(time.Duration(n) * time.Minute)
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(from.Add(time.Minute)) }
	m := minute{Minute: n + 1, By: map[string]float64{}}
	var took []time.Duration
	for _, t := range l.took {
		if within(t.at) {
			took = append(took, t.v)
		}
	}
	var total []float64
	by := map[string][]float64{}
	for _, u := range l.used {
		if !within(u.at) {
			continue
		}
		total, m.Store = append(total, u.v.total()), u.v.store
		for name, v := range u.v.pss {
			by[name] = append(by[name], v)
		}
	}
	for name, v := range by {
		m.By[name] = quantile(v, 0.5)
	}
	for _, k := range l.kills {
		if within(k.at) {
			m.Kills++
		}
	}
	ms := func(q float64) float64 { return float64(quantile(took, q)) / float64(time.Millisecond) }
	m.Messages, m.P50, m.P99, m.Slowest, m.PSS = len(took), ms(0.5), ms(0.99), ms(1), quantile(total, 0.5)
	return m
}

// eachMinute reports the last minute.
func (l *load) eachMinute(r *run, began time.Time, stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(time.Until(began.Add(time.Duration(n+1) * time.Minute))):
			r.say("%s", l.minute(began, n))
		}
	}
}
