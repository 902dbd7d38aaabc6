package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// families are the metrics of one scrape, by name.
type families struct{ byName map[string]*dto.MetricFamily }

func (f *families) family(name, help string, kind dto.MetricType) *dto.MetricFamily {
	if f.byName == nil {
		f.byName = map[string]*dto.MetricFamily{}
	}
	name = "switchboard_" + name
	found := f.byName[name]
	if found == nil {
		found = &dto.MetricFamily{Name: &name, Help: &help, Type: &kind}
		f.byName[name] = found
	}
	return found
}

func (f *families) sorted() []*dto.MetricFamily {
	all := slices.Collect(maps.Values(f.byName))
	for _, one := range all {
		slices.SortFunc(one.Metric, func(a, b *dto.Metric) int { return cmp.Compare(valuesOf(a), valuesOf(b)) })
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all
}

func valuesOf(m *dto.Metric) string {
	var all []string
	for _, l := range m.GetLabel() {
		all = append(all, l.GetValue())
	}
	return strings.Join(all, "\x00")
}

// labels are names and values in turn.
func labels(pairs []string) (all []*dto.LabelPair) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, &dto.LabelPair{Name: &pairs[i], Value: &pairs[i+1]})
	}
	return all
}

func (f *families) gauge(name, help string, value float64, pairs ...string) {
	one := f.family(name, help, dto.MetricType_GAUGE)
	one.Metric = append(one.Metric, &dto.Metric{Label: labels(pairs), Gauge: &dto.Gauge{Value: &value}})
}

func (f *families) counter(name, help string, value float64, pairs ...string) {
	one := f.family(name, help, dto.MetricType_COUNTER)
	one.Metric = append(one.Metric, &dto.Metric{Label: labels(pairs), Counter: &dto.Counter{Value: &value}})
}

// bounds are the upper bounds of the buckets of all histograms, in seconds.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600}

// histogram counts durations.
type histogram struct {
	buckets []uint64 // by bounds, not cumulative
	count   uint64
	sum     float64
}

func (h *histogram) observe(d time.Duration) {
	if h.buckets == nil {
		h.buckets = make([]uint64, len(bounds))
	}
	seconds := max(0, d.Seconds())
	h.count++
	h.sum += seconds
	if i, _ := slices.BinarySearch(bounds, seconds); i < len(bounds) {
		h.buckets[i]++
	}
}

func (f *families) histogram(name, help string, h *histogram, pairs ...string) {
	one := f.family(name, help, dto.MetricType_HISTOGRAM)
	out := &dto.Histogram{SampleCount: new(h.count), SampleSum: new(h.sum)}
	total := uint64(0)
	for i, n := range h.buckets {
		total += n
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: &bounds[i], CumulativeCount: new(total)})
	}
	one.Metric = append(one.Metric, &dto.Metric{Label: labels(pairs), Histogram: out})
}
