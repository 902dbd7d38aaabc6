package board

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	usagePath = "/board/usage"
	mostDays  = 365
)

// usage shows what models used: to a member, for them.
func (b *board) usage(mux *http.ServeMux) {
	b.page(mux, usagePath, members, door.ScopeUsage, func(q *request) (*sheet, error) {
		days := min(number(q.URL.Query().Get("days"), 30), mostDays)
		kept, err := b.Read.Usage(q.Context(), &adminv1.UsageRequest{Days: int32(days)})
		if err != nil {
			return nil, err
		}
		people, err := b.Read.People(q.Context(), &adminv1.PeopleRequest{})
		if err != nil {
			return nil, err
		}
		rows := kept.GetRows()
		if !q.v.Owner() {
			rows = slices.DeleteFunc(rows, func(u *adminv1.Usage) bool { return !isOf(u, q.v.Person, people.GetPeople()) })
		}
		s := &sheet{Title: q.say("Usage")}
		var links []link
		for _, n := range []int{7, 30, 90, mostDays} {
			links = append(links, link{
				Text: q.say("%d days", n), Href: fmt.Sprintf("%s?days=%d", usagePath, n), Here: n == days,
			})
		}
		sum := block{Links: links}
		if q.v.Owner() {
			status, err := b.Read.Status(q.Context(), &adminv1.StatusRequest{})
			if err != nil {
				return nil, err
			}
			sum.Problems = q.translated(status.GetLimits())
		}
		if len(rows) == 0 {
			sum.Text = []string{q.say("No language model was used in this time. The offline model costs nothing.")}
			s.Blocks = []block{sum}
			return s, nil
		}
		s.Blocks = append([]block{sum}, q.usageBlocks(rows, people.GetPeople(), days)...)
		return s, nil
	})
}

// isOf reports whether usage is that of a person.
func isOf(u *adminv1.Usage, person string, people []*adminv1.Person) bool {
	if u.GetPerson() == "" {
		return false
	}
	if u.GetPerson() == person {
		return true
	}
	for _, x := range people {
		if x.GetId() == person {
			return slices.ContainsFunc(x.GetAccounts(), func(a *adminv1.Account) bool { return a.GetId() == u.GetPerson() })
		}
	}
	return false
}

// usageBlocks are plots over days, and a table by each of agent, model and person.
func (q *request) usageBlocks(rows []*adminv1.Usage, people []*adminv1.Person, days int) []block {
	byDay := sumUp(rows, func(u *adminv1.Usage) string { return u.GetDay() })
	slices.SortFunc(byDay, func(a, b admin.Usage) int { return cmp.Compare(a.Name, b.Name) })
	filled := q.everyDay(byDay, days)
	blocks := []block{{
		Title: q.say("Tokens"), Plot: q.bars(q.say("Tokens by day"), filled, func(u admin.Usage) float64 {
			return float64(u.Input + u.Output)
		}, func(u admin.Usage) string { return humanize.Comma(u.Input + u.Output) }),
	}}
	for _, currency := range currencies(byDay) {
		blocks = append(blocks, block{
			Title: q.say("Money in %s", currency),
			Plot: q.bars(q.say("Money by day, in %s", currency), filled, func(u admin.Usage) float64 {
				return float64(u.Costs[currency]) / 1e6
			}, func(u admin.Usage) string {
				return (admin.Usage{Costs: map[string]int64{currency: u.Costs[currency]}}).Money()
			}),
		})
	}
	names := map[string]string{"": q.say("no one"), contract.Owner: contract.Owner}
	for _, x := range people {
		names[x.GetId()] = nameOf(x)
		for _, a := range x.GetAccounts() {
			names[a.GetId()] = nameOf(x)
		}
	}
	tables := []struct {
		title, column string
		name          func(u *adminv1.Usage) string
	}{
		{q.say("By model"), q.say("Model"), (*adminv1.Usage).GetModel},
		{q.say("By agent"), q.say("Agent"), (*adminv1.Usage).GetAgent},
		{q.say("By person"), q.say("Person"), func(u *adminv1.Usage) string {
			return cmp.Or(names[u.GetPerson()], u.GetPerson())
		}},
	}
	if !q.v.Owner() {
		tables = tables[:2]
	}
	for _, t := range tables {
		sums := sumUp(rows, t.name)
		slices.SortFunc(sums, func(a, b admin.Usage) int {
			return cmp.Or(cmp.Compare(b.Input+b.Output, a.Input+a.Output), cmp.Compare(a.Name, b.Name))
		})
		blocks = append(blocks, block{Title: t.title, Table: q.usageTable(t.column, sums)})
	}
	slices.Reverse(byDay)
	return append(blocks, block{Title: q.say("By day"), Folded: true, Table: q.usageTable(q.say("Day"), byDay)})
}

// sumUp adds usage up by a name.
func sumUp(rows []*adminv1.Usage, name func(*adminv1.Usage) string) (sums []admin.Usage) {
	at := map[string]int{}
	for _, r := range rows {
		u := admin.Usage{
			Name: name(r), Calls: r.GetCalls(), Input: r.GetInputTokens(), Output: r.GetOutputTokens(),
			Cached: r.GetCachedTokens(), Estimated: r.GetEstimatedCalls(), Costs: r.GetCosts(),
		}
		if i, known := at[u.Name]; known {
			sums[i].Add(u)
			continue
		}
		at[u.Name] = len(sums)
		sums = append(sums, u)
	}
	return sums
}

// everyDay adds the days on which nothing was used.
func (q *request) everyDay(used []admin.Usage, days int) (all []admin.Usage) {
	known := map[string]admin.Usage{}
	for _, u := range used {
		known[u.Name] = u
	}
	for i := range days {
		name := q.midnight(i + 1 - days).Format("2006-01-02")
		u, ok := known[name]
		if !ok {
			u.Name = name
		}
		all = append(all, u)
	}
	return all
}

func currencies(sums []admin.Usage) (all []string) {
	for _, u := range sums {
		for currency, cost := range u.Costs {
			if cost > 0 && !slices.Contains(all, currency) {
				all = append(all, currency)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (q *request) usageTable(column string, sums []admin.Usage) *table {
	t := &table{Head: []string{
		column, q.say("Calls"), q.say("Input"), q.say("Cached"), q.say("Output"), q.say("Tokens"), q.say("Cost"),
	}}
	for _, u := range sums {
		mark := ""
		if u.Estimated > 0 { // the provider didn't report all of it
			mark = "~"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			text(u.Name), text(humanize.Comma(u.Calls)), text(mark + humanize.Comma(u.Input)), text(humanize.Comma(u.Cached)),
			text(mark + humanize.Comma(u.Output)), text(mark + humanize.Comma(u.Input+u.Output)), text(dash(u.Money())),
		}})
	}
	return t
}
