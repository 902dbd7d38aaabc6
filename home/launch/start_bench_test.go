package launch

import (
	"context"
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/home/orphans"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/supervisor/supervisortest"
)

// BenchmarkStart measures from Apply until all are active, and the stop.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 7} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var specs []supervisor.Spec
			for i := range n {
				specs = append(specs, spec(fmt.Sprintf("x%d", i), "extension", behavior{}))
			}
			for b.Loop() {
				b.StopTimer()
				r := supervisortest.NewRecorder(b)
				l, err := New(Options{
					RunDir: shortDir(b), Output: newLogs().output, Processes: orphans.Unwatched{}, Log: hclog.NewNullLogger(),
				})
				if err != nil {
					b.Fatal(err)
				}
				s := supervisor.New(supervisor.Options{Observer: r, Launcher: l.Launch})
				s.Begin(0)
				b.StartTimer()
				if err := s.Apply(specs); err != nil {
					b.Fatal(err)
				}
				if err := s.Wait(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := s.Stop(context.Background()); err != nil {
					b.Fatal(err)
				}
				l.Close()
				b.StartTimer()
			}
		})
	}
}
