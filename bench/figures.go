package main

import (
	"fmt"
	"slices"
	"time"
)

// quantile of sorted or unsorted values; q from 0 to 1.
func quantile[T int64 | float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T int64 | float64 | time.Duration](values []T) T { return quantile(values, 0.5) }

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

// spread is a median with the minimum and maximum of the rounds.
func spread[T int64 | float64 | time.Duration](values []T, show func(T) string) string {
	return fmt.Sprintf("%s (%s to %s in %d rounds)", show(median(values)), show(slices.Min(values)),
		show(slices.Max(values)), len(values))
}

func perSecond(f float64) string { return fmt.Sprintf("%.0f/s", f) }

func times(f float64) string { return fmt.Sprintf("%.2f times", f) }
