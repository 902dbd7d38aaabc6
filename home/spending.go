package home

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/metering"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/home/config"
)

// micros converts an amount of money to millionths.
func micros(amount float64) int64 { return int64(math.Round(amount * 1e6)) }

// limits returns the limits of what models may use: those of all models first.
func (p *plan) limits() (all []metering.Limit) {
	m := p.config.Models
	add := func(monthly bool, agent, model string, tokens int64, money float64, currency, setting string) {
		l := metering.Limit{Monthly: monthly, Agent: agent, Model: model, Amount: tokens, Setting: setting}
		amount := words.Sprintf("%d tokens", tokens)
		if money > 0 {
			l.Currency = cmp.Or(currency, m.Currency)
			l.Amount, amount = micros(money), fmt.Sprintf("%.2f %s", money, l.Currency)
		}
		switch {
		case agent != "" && monthly:
			l.Name = words.Sprintf("this month's limit of %v for the agent %s", amount, agent)
			l.Then = words.Sprintf("it asks no model until the end of the month")
		case agent != "":
			l.Name = words.Sprintf("today's limit of %v for the agent %s", amount, agent)
			l.Then = words.Sprintf("it asks no model until midnight")
		case model != "" && monthly:
			l.Name = words.Sprintf("this month's limit of %v for %s", amount, model)
			l.Then = words.Sprintf("it is not asked until the end of the month")
		case model != "":
			l.Name = words.Sprintf("today's limit of %v for %s", amount, model)
			l.Then = words.Sprintf("it is not asked until midnight")
		case monthly:
			l.Name = words.Sprintf("this month's limit of %v for all models", amount)
			l.Then = words.Sprintf("no model is asked until the end of the month")
		default:
			l.Name = words.Sprintf("today's limit of %v for all models", amount)
			l.Then = words.Sprintf("no model is asked until midnight")
		}
		all = append(all, l)
	}
	for _, model := range slices.Sorted(maps.Keys(m.DailyTokens)) {
		n := m.DailyTokens[model]
		setting := fmt.Sprintf("models.daily_tokens: {%s: %d}", model, n)
		if model == config.TotalTokens {
			model = ""
		}
		add(false, "", model, n, 0, "", setting)
	}
	for _, name := range slices.Sorted(maps.Keys(p.config.People)) {
		all = append(all, budgets(name, p.config.People[name])...)
	}
	for _, l := range m.Limits {
		add(l.Per == "month", l.Agent, l.Model, l.Tokens, l.Money, l.Currency, "models.limits: "+l.String())
	}
	for _, id := range slices.Sorted(maps.Keys(p.members)) {
		if a := p.members[id].manifest.Agent; a != nil && a.Limits.DailyTokens > 0 {
			n := a.Limits.DailyTokens
			add(false, id, "", n, 0, "", fmt.Sprintf("agent.limits.daily_tokens: %d in its manifest", n))
		}
	}
	slices.SortStableFunc(all, func(a, b metering.Limit) int {
		return strings.Compare(a.Agent+a.Model, b.Agent+b.Model) // empty ones first
	})
	return all
}

// budgets returns the limits of what models do for a person.
func budgets(name string, b config.Budget) (all []metering.Limit) {
	if n := b.DailyTokens; n > 0 {
		all = append(all, metering.Limit{
			Person: name, Amount: n, Setting: fmt.Sprintf("people.%s.daily_tokens: %d", name, n),
			Name: words.Sprintf("today's limit of %v for %s", words.Sprintf("%d tokens", n), name),
			Then: words.Sprintf("no model answers them until midnight"),
			Refusal: words.Sprintf("You have used your %s tokens for today. From midnight I can think again.",
				humanize.Comma(n)),
		})
	}
	if n := b.MonthlyTokens; n > 0 {
		all = append(all, metering.Limit{
			Person: name, Monthly: true, Amount: n, Setting: fmt.Sprintf("people.%s.monthly_tokens: %d", name, n),
			Name: words.Sprintf("this month's limit of %v for %s", words.Sprintf("%d tokens", n), name),
			Then: words.Sprintf("no model answers them until the end of the month"),
			Refusal: words.Sprintf("You have used your %s tokens for this month. Next month I can think again.",
				humanize.Comma(n)),
		})
	}
	return all
}

// price returns the price of a model, as <provider>/<model>; false: not known.
func (p *plan) price(full string) (config.Price, bool) {
	id, model, _ := strings.Cut(full, "/")
	m := p.members[id]
	if m == nil || !m.builtin || m.manifest.Provides.Fallback {
		return config.Price{Currency: p.config.Models.Currency}, m != nil && m.manifest.Provides.Fallback
	}
	text := func(key string) string {
		s, _ := m.config[key].(string)
		return s
	}
	url := text("base_url")
	for _, name := range m.manifest.Run.Env {
		if value, ok := m.env(name); ok && value != "" && strings.HasSuffix(name, "_BASE_URL") {
			url = value
		}
	}
	return p.config.PriceOf(id, m.manifest.Run.Builtin, strings.TrimRight(url, "/"), text("key"), model)
}

// charge sets the cost of a completion by the price of its model, if that is known.
func (p *plan) charge(u *contract.ModelUsage) {
	price, known := p.price(u.Model)
	if !known {
		return
	}
	cached := min(u.CachedTokens, u.InputTokens)
	u.Currency = price.Currency
	u.CostMicros = int64(math.Round(float64(u.InputTokens-cached)*price.Input +
		float64(cached)*price.CachedInput() + float64(u.OutputTokens)*price.Output +
		float64(u.AudioMS)/60_000*1e6*price.Minute))
}
