package usage_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/usage"
)

// kernel has rows of the last days, as many as are asked for.
type kernel struct {
	adminv1.ReadClient
	rows []*adminv1.Usage
	days []int32
}

func (k *kernel) Usage(_ context.Context, q *adminv1.UsageRequest, _ ...grpc.CallOption) (*adminv1.UsageResponse, error) {
	k.days = append(k.days, q.GetDays())
	rows := k.rows
	if q.GetDays() == 1 {
		rows = rows[min(1, len(rows)):]
	}
	return &adminv1.UsageResponse{Rows: rows, Currency: "EUR"}, nil
}

func (k *kernel) Status(context.Context, *adminv1.StatusRequest, ...grpc.CallOption) (*adminv1.Status, error) {
	return &adminv1.Status{Limits: []string{"today's limit is reached"}}, nil
}

func TestShow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	k := &kernel{rows: []*adminv1.Usage{
		{Day: "2026-11-02", Model: "a/m", InputTokens: 9000, OutputTokens: 1000, CachedTokens: 5000,
			Costs: map[string]int64{"EUR": 1_500_000, "USD": 250_000}},
		{Day: "2026-11-23", Model: "local/m", InputTokens: 10, OutputTokens: 5},
	}}
	got, err := usage.Show(t.Context(), k, now, "")
	if want := "Today: 15 tokens\nThis month: 10,015 tokens (5,000 from a cache), 1.50 EUR + 0.25 USD\n\n" +
		"- a/m: 10,000 tokens (5,000 from a cache), 1.50 EUR + 0.25 USD\n- local/m: 15 tokens\n\ntoday's limit is reached"; err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if k.days[0] != 23 {
		t.Errorf("the month has %d days so far", k.days[0])
	}
	k.rows = nil
	if got, err := usage.Show(t.Context(), k, now, ""); err != nil || got != "No language model was used this month. "+
		"The offline model costs nothing." {
		t.Errorf("got %q, %v", got, err)
	}
}
