package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
)

// By lists the ways to add up usage. Usage by session is known as long as events are
// kept.
var By = []string{"day", "agent", "model", "person", "session"}

// noPerson is the name of what models did for no person.
const noPerson = "no one"

// Usage is a sum of tokens and money over completions.
type Usage struct {
	Name      string `json:"name"` // the day, agent, model, person or session
	Calls     int64  `json:"calls"`
	Input     int64  `json:"input_tokens"`
	Output    int64  `json:"output_tokens"`
	Cached    int64  `json:"cached_tokens"`   // of the input: what the providers had in their caches
	Estimated int64  `json:"estimated_calls"` // of the calls: the provider reported no tokens
	// Costs is the money by its currency, in millionths, of the models that have a price.
	Costs map[string]int64 `json:"cost_micros"`
}

// Add adds another sum.
func (u *Usage) Add(o Usage) {
	u.Calls, u.Input, u.Output = u.Calls+o.Calls, u.Input+o.Input, u.Output+o.Output
	u.Cached, u.Estimated = u.Cached+o.Cached, u.Estimated+o.Estimated
	costs := map[string]int64{}
	for _, part := range []map[string]int64{u.Costs, o.Costs} {
		for currency, cost := range part {
			costs[currency] += cost
		}
	}
	u.Costs = costs
}

// ReadUsage adds up the tokens of completions on the last days, today included. Days
// come in order, anything else by tokens, the most first.
func ReadUsage(ctx context.Context, c adminv1.ReadClient, by string, days int) ([]Usage, error) {
	if !slices.Contains(By, by) {
		return nil, fmt.Errorf("%w: usage by %q is not known", contract.ErrInvalid, by)
	}
	kept, err := c.Usage(ctx, &adminv1.UsageRequest{Days: int32(min(days, 1<<20))}) //nolint:gosec // it is bounded
	if err != nil {
		return nil, err
	}
	var all []Usage
	if by == "session" {
		all, err = usageOfEvents(ctx, c, time.UnixMicro(kept.GetFromUs()), kept.GetCurrency())
	} else {
		all, err = usageOfRows(ctx, c, kept.GetRows(), by)
	}
	sums, place := []Usage{}, map[string]int{}
	for _, u := range all {
		if i, known := place[u.Name]; known {
			sums[i].Add(u)
			continue
		}
		place[u.Name] = len(sums)
		sums = append(sums, u)
	}
	slices.SortFunc(sums, func(a, b Usage) int {
		if by == "day" {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.Input+b.Output, a.Input+a.Output), cmp.Compare(a.Name, b.Name))
	})
	return sums, err
}

func usageOfRows(ctx context.Context, c adminv1.ReadClient, rows []*adminv1.Usage, by string) (all []Usage, err error) {
	names := map[string]string{"": noPerson, contract.Owner: contract.Owner} // of people, by their accounts
	if by == "person" {
		known, err := c.People(ctx, &adminv1.PeopleRequest{})
		if err != nil {
			return nil, err
		}
		for _, p := range known.GetPeople() {
			names[p.GetId()] = cmp.Or(p.GetName(), p.GetId())
			for _, a := range p.GetAccounts() {
				names[a.GetId()] = names[p.GetId()]
			}
		}
	}
	for _, r := range rows {
		person := cmp.Or(names[r.GetPerson()], r.GetPerson()) // the account of one who was removed
		name := map[string]string{"day": r.GetDay(), "agent": r.GetAgent(), "model": r.GetModel(), "person": person}[by]
		all = append(all, Usage{
			Name: name, Calls: r.GetCalls(), Input: r.GetInputTokens(), Output: r.GetOutputTokens(),
			Cached: r.GetCachedTokens(), Estimated: r.GetEstimatedCalls(), Costs: r.GetCosts(),
		})
	}
	return all, nil
}

// usageOfEvents reads the events of completions, the newest first. The cost of an old event
// has the default currency.
func usageOfEvents(
	ctx context.Context, c adminv1.ReadClient, from time.Time, currency string,
) (all []Usage, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	const every = 1 << 30
	events, err := c.Events(ctx, &adminv1.EventsRequest{Topic: contract.TopicModelUsage, Limit: every})
	if err != nil {
		return nil, err
	}
	for {
		e, err := events.Recv()
		if errors.Is(err, io.EOF) || err == nil && e.GetCreatedAtUs() < from.UnixMicro() {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var u contract.ModelUsage
		if err := json.Unmarshal(e.GetPayload(), &u); err != nil {
			return nil, fmt.Errorf("read event %s: %w", e.GetId(), err)
		}
		one := Usage{
			Name: cmp.Or(u.Session, u.Agent), Calls: 1, Input: u.InputTokens, Output: u.OutputTokens, Cached: u.CachedTokens,
		}
		if u.CostMicros > 0 {
			one.Costs = map[string]int64{cmp.Or(u.Currency, currency): u.CostMicros}
		}
		if u.Estimated {
			one.Estimated = 1
		}
		all = append(all, one)
	}
}

// Money shows the cost in each of its currencies; empty: nothing, or no model had a price.
func (u Usage) Money() string {
	var parts []string
	for _, currency := range slices.Sorted(maps.Keys(u.Costs)) {
		switch amount := float64(u.Costs[currency]) / 1e6; {
		case amount == 0:
		case amount < 0.0001:
			parts = append(parts, "<0.0001 "+currency)
		case amount < 0.1:
			parts = append(parts, fmt.Sprintf("%.4f %s", amount, currency))
		default:
			parts = append(parts, fmt.Sprintf("%.2f %s", amount, currency))
		}
	}
	return strings.Join(parts, " + ")
}
