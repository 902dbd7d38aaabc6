package supervisor

import (
	"context"
	"fmt"
	"testing"
)

// BenchmarkStart measures from Apply until all are active, and the stop.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 7} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var specs []Spec
			for i := range n {
				specs = append(specs, spec(fmt.Sprintf("x%d", i), "extension", behavior{}))
			}
			for b.Loop() {
				b.StopTimer()
				r := newRecorder(b)
				s, err := New(Options{Observer: r, RunDir: shortDir(b)})
				if err != nil {
					b.Fatal(err)
				}
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
				b.StartTimer()
			}
		})
	}
}
