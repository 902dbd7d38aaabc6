package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// account is a kernel that knows what completions took.
type account struct{ adminv1.ReadClient }

func (account) Usage(_ context.Context, q *adminv1.UsageRequest, _ ...grpc.CallOption) (*adminv1.UsageResponse, error) {
	if q.GetDays() != 2 {
		return nil, fmt.Errorf("%w: %d days", contract.ErrInvalid, q.GetDays())
	}
	return &adminv1.UsageResponse{FromUs: 1000, Currency: "EUR", Rows: []*adminv1.Usage{
		{Day: "2000-01-01", Agent: "chat", Model: "openai/mini", Calls: 2, InputTokens: 300, OutputTokens: 30,
			Costs: map[string]int64{"EUR": 250_000}},
		{
			Day:          "2000-01-01",
			Agent:        "orchestrator",
			Model:        "openai/mini",
			Calls:        1,
			InputTokens:  1000,
			OutputTokens: 1,
			CachedTokens: 900,
			Costs:        map[string]int64{"EUR": 4_000, "USD": 9_000},
		},
		{Day: "2000-01-02", Agent: "chat", Model: "local/a/b", Calls: 2, InputTokens: 8, OutputTokens: 7, EstimatedCalls: 1},
	}}, nil
}

func (account) Events(
	_ context.Context,
	q *adminv1.EventsRequest,
	_ ...grpc.CallOption,
) (adminv1.Read_EventsClient, error) {
	s := &events{}
	if q.GetTopic() != contract.TopicModelUsage {
		return s, nil
	}
	for _, payload := range []string{
		`{"agent":"chat","session":"s1","input_tokens":5,"output_tokens":1,"estimated":true}`,
		`{"agent":"orchestrator","input_tokens":50}`,
		`{"agent":"chat","session":"s1","input_tokens":6,"cached_tokens":4,"cost_micros":70}`,
	} {
		s.rows = append(s.rows, &busv1.Event{Id: "e1", CreatedAtUs: 1000, Payload: []byte(payload)})
	}
	s.rows = append(s.rows, &busv1.Event{Id: "e0", CreatedAtUs: 999, Payload: []byte("too old to be read")})
	return s, nil
}

type events struct {
	grpc.ClientStream
	rows []*busv1.Event
}

func (s *events) Recv() (*busv1.Event, error) {
	if len(s.rows) == 0 {
		return nil, io.EOF
	}
	e := s.rows[0]
	s.rows = s.rows[1:]
	return e, nil
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for by, want := range map[string][]admin.Usage{
		"day":     {{"2000-01-01", 3, 1300, 31, 900, 0, map[string]int64{"EUR": 254000, "USD": 9000}}, {"2000-01-02", 2, 8, 7, 0, 1, nil}},
		"agent":   {{"orchestrator", 1, 1000, 1, 900, 0, map[string]int64{"EUR": 4000, "USD": 9000}}, {"chat", 4, 308, 37, 0, 1, map[string]int64{"EUR": 250000}}},
		"model":   {{"openai/mini", 3, 1300, 31, 900, 0, map[string]int64{"EUR": 254000, "USD": 9000}}, {"local/a/b", 2, 8, 7, 0, 1, nil}},
		"session": {{"orchestrator", 1, 50, 0, 0, 0, nil}, {"s1", 2, 11, 1, 4, 1, map[string]int64{"EUR": 70}}},
	} {
		if got, err := admin.ReadUsage(t.Context(), account{}, by, 2); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("by %s: %+v, %v, want %+v", by, got, err, want)
		}
	}
	for by, days := range map[string]int{"moon": 2, "day": 401} {
		if _, err := admin.ReadUsage(t.Context(), account{}, by, days); !errors.Is(err, contract.ErrInvalid) {
			t.Errorf("by %s, %d days: %v", by, days, err)
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for cost, want := range map[int64]string{0: "", 42: "<0.0001 USD", 4200: "0.0042 USD", 1_234_567: "1.23 USD"} {
		if got := (admin.Usage{Costs: map[string]int64{"USD": cost}}).Money(); got != want {
			t.Errorf("%d: %q, want %q", cost, got, want)
		}
	}
	if got := (admin.Usage{Costs: map[string]int64{"USD": 2_000_000, "EUR": 1_500_000}}).Money(); got != "1.50 EUR + 2.00 USD" {
		t.Errorf("in two currencies: %q", got)
	}
}
