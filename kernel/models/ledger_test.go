package models_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/metering"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
	"github.com/switchboard-run/switchboard/kernel/models"
)

// world is a kernel with a ledger; its time is that of the bubble.
type world struct {
	*kerneltest.World
	ledger *models.Ledger
}

func run(t *testing.T, play func(w *world)) {
	t.Helper()
	kerneltest.Run(t, func(k *kerneltest.World) {
		w := &world{World: k}
		w.Know(func(s *directory.Snapshot) {
			for _, id := range []string{"chat", "orchestrator"} {
				s.Agents = append(s.Agents, directory.Agent{ID: id, Spec: &extensionv1.AgentSpec{}})
			}
		})
		w.open()
		play(w)
	})
}

func (w *world) open() { w.ledger = models.NewLedger(w.Bus, w.Directory, hclog.NewNullLogger()) }

func (w *world) restart() {
	w.Restart()
	w.open()
}

// spends has an agent complete with a model.
func (w *world) spends(agent, model string, input, output int64) {
	w.T.Helper()
	c, err := w.ledger.Begin(contract.ModelUsage{Agent: agent, Model: model, InputTokens: 10})
	if err != nil {
		w.T.Fatal(err)
	}
	c.Spent(
		nil,
		contract.ModelUsage{Agent: agent, Session: "s-" + agent, Model: model, InputTokens: input, OutputTokens: output},
	)
}

// check returns the error with which a completion is refused now.
func (w *world) check(agent, model string) error {
	w.T.Helper()
	c, err := w.ledger.Begin(contract.ModelUsage{Agent: agent, Model: model})
	if err == nil {
		c.Drop()
	}
	return err
}

// refuses says that a completion is refused with the words.
func (w *world) refuses(agent, model string, words ...string) {
	w.T.Helper()
	err := w.check(agent, model)
	if !errors.Is(err, contract.ErrUnavailable) {
		w.T.Fatalf("%s may ask %s: %v", agent, model, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.T.Errorf("the refusal %q lacks %q", err, word)
		}
	}
}

func (w *world) allows(agent, model string) {
	w.T.Helper()
	if err := w.check(agent, model); err != nil {
		w.T.Errorf("%s may not ask %s: %v", agent, model, err)
	}
}

func (w *world) limit(limits map[string]int64) {
	w.Know(func(s *directory.Snapshot) { s.Limits = daily(limits) })
}

// daily are limits of tokens, by models, as home makes them.
func daily(limits map[string]int64) (all []metering.Limit) {
	for model, n := range limits {
		l := metering.Limit{
			Model: model, Amount: n, Setting: fmt.Sprintf("models.daily_tokens: {%s: %d}", model, n),
			Name: fmt.Sprintf("today's limit of %d tokens for %s", n, model), Then: "it is not asked until midnight",
		}
		if model == "total" {
			l.Model, l.Name = "", fmt.Sprintf("today's limit of %d tokens for all models", n)
		}
		all = append(all, l)
	}
	return all
}

// sums compares what was kept, each as "day agent model calls input output estimated".
func (w *world) sums(days int, want ...string) {
	w.T.Helper()
	w.Wait(journal.LazyDelay)
	rows, _, err := w.ledger.Rows(w.T.Context(), days)
	if err != nil {
		w.T.Fatal(err)
	}
	got := []string{}
	for _, r := range rows {
		got = append(
			got,
			fmt.Sprint(r.Day, " ", r.Agent, " ", r.Model, " ", r.Calls, " ", r.Input, " ", r.Output, " ", r.Estimated),
		)
	}
	if !slices.Equal(got, want) {
		w.T.Errorf("%d days: got %q, want %q", days, got, want)
	}
}

func TestSumsAreKept(t *testing.T) {
	run(t, func(w *world) {
		w.spends("chat", "openai/mini", 100, 10)
		w.spends("chat", "openai/mini", 200, 20)
		w.spends("orchestrator", "openai/mini", 1000, 1)
		w.Wait(24 * time.Hour) // the bubble begins at 2000-01-01
		w.restart()
		w.spends("chat", "local/a/b", 7, 7)
		c, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: "local/a/b", InputTokens: 10})
		if err != nil {
			w.T.Fatal(err)
		}
		c.Spent(
			nil,
			contract.ModelUsage{Agent: "chat", Session: "s-chat", Model: "local/a/b", InputTokens: 1, Estimated: true},
		)

		second := []string{"2000-01-02 chat local/a/b 2 8 7 1"}
		w.sums(1, second...)
		w.sums(
			30,
			append(
				[]string{"2000-01-01 chat openai/mini 2 300 30 0", "2000-01-01 orchestrator openai/mini 1 1000 1 0"},
				second...)...)
		if _, from, err := w.ledger.Rows(
			w.T.Context(),
			2,
		); err != nil ||
			!from.Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("two days begin %s, %v", from, err)
		}
		for _, days := range []int{0, 401} {
			if _, _, err := w.ledger.Rows(w.T.Context(), days); !errors.Is(err, contract.ErrInvalid) {
				w.T.Errorf("%d days: %v", days, err)
			}
		}
	})
}

// What is submitted after an answer was paid for implies that it was.
func TestWhatIsSubmittedLaterImpliesTheSum(t *testing.T) {
	run(t, func(w *world) {
		for i := range 20 {
			w.spends("chat", "openai/mini", 1, 1)
			w.Do(func(tx *bus.Tx) error {
				v, err := tx.KVGet(contract.KernelSource, "usage/2000-01-01/chat/openai/mini")
				if want := fmt.Sprintf(`{"calls":%d,"input":%d,"output":%d}`, i+1, i+1, i+1); string(v.Value) != want {
					w.T.Errorf("the sum is %s, want %s", v.Value, want)
				}
				return err
			})
		}
		if n := len(w.Events(contract.TopicModelUsage)); n != 20 {
			w.T.Errorf("%d events of 20 completions", n)
		}
	})
}

func TestLimits(t *testing.T) {
	for name, limited := range map[string]struct {
		limits      map[string]int64
		agent       int64
		who, what   string // is refused
		also, model string // is not
		words       []string
	}{
		"of all": {map[string]int64{"total": 500}, 0, "orchestrator", "local/other", "", "",
			[]string{"today's limit of 500 tokens for all models is reached", "models.daily_tokens: {total: 500}", "until midnight (UTC)"}},
		"of a model": {map[string]int64{"openai/mini": 500}, 0, "orchestrator", "openai/mini", "chat", "openai/nano",
			[]string{"today's limit of 500 tokens for openai/mini is reached", "models.daily_tokens: {openai/mini: 500}"}},
		"of an agent": {nil, 500, "chat", "openai/nano", "orchestrator", "openai/mini",
			[]string{"today's limit of 500 tokens for the agent chat is reached", "agent.limits.daily_tokens: 500 in its manifest"}},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(w *world) {
				w.limit(limited.limits)
				if limited.agent > 0 {
					w.Know(func(s *directory.Snapshot) {
						s.Limits = []metering.Limit{
							{
								Agent: "chat", Amount: limited.agent, Setting: "agent.limits.daily_tokens: 500 in its manifest",
								Name: "today's limit of 500 tokens for the agent chat",
							},
						}
					})
				}
				w.spends("chat", "openai/mini", 400, 99)
				w.allows(limited.who, limited.what)
				if reached, err := w.ledger.Reached(); err != nil || len(reached) > 0 {
					t.Errorf("reached too early: %q, %v", reached, err)
				}
				w.spends("chat", "openai/mini", 1, 0)
				w.refuses(limited.who, limited.what, limited.words...)
				if reached, err := w.ledger.Reached(); err != nil || len(reached) != 1 ||
					!strings.Contains(reached[0], limited.words[0]) {
					t.Errorf("reached: %q, %v; want %q", reached, err, limited.words[0])
				}
				if limited.also != "" {
					w.allows(limited.also, limited.model)
				}
				w.Wait(journal.LazyDelay)
				w.restart()
				w.refuses(limited.who, limited.what)

				before := w.Directory.Current()
				w.limit(nil)
				w.allows(limited.who, limited.what) // at once
				w.Directory.Set(before)
				w.refuses(limited.who, limited.what)
				w.Wait(24 * time.Hour)
				w.allows(limited.who, limited.what)
			})
		})
	}
}

// Many at the same time do not go beyond a limit that each alone keeps.
func TestWhatIsUnderwayCounts(t *testing.T) {
	run(t, func(w *world) {
		w.limit(map[string]int64{"total": 100})
		first, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: "openai/mini", InputTokens: 60})
		if err != nil {
			w.T.Fatal(err)
		}
		second, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: "openai/mini", InputTokens: 60})
		if err != nil {
			w.T.Fatal(err)
		}
		w.refuses("chat", "openai/mini")
		w.Know(func(s *directory.Snapshot) { s.Location = time.FixedZone("East", 3600) }) // the same day
		w.refuses("chat", "openai/mini")
		first.Drop()
		first.Drop()
		w.allows("chat", "openai/mini")
		second.Spent(nil, contract.ModelUsage{Agent: "chat", Model: "openai/mini", InputTokens: 99})
		w.allows("chat", "openai/mini")
	})
}

// A day is one of the configured zone.
func TestADayEndsAtMidnightOfTheZone(t *testing.T) {
	run(t, func(w *world) {
		w.Know(func(s *directory.Snapshot) { s.Location = time.FixedZone("West", -3*3600) })
		w.limit(map[string]int64{"total": 10})
		w.spends("chat", "openai/mini", 10, 0) // 21:00 of the day before
		w.sums(1, "1999-12-31 chat openai/mini 1 10 0 0")
		w.refuses("chat", "openai/mini", "until midnight (West)")
		w.Wait(2*time.Hour + 59*time.Minute)
		w.refuses("chat", "openai/mini")
		w.Wait(time.Minute)
		w.allows("chat", "openai/mini")
	})
}

// What <extension>/* answers as is what its limit counts for.
func TestALimitOfAModelThatTheProviderChooses(t *testing.T) {
	run(t, func(w *world) {
		w.limit(map[string]int64{"openai/mini": 10})
		c, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: "openai/*", InputTokens: 1})
		if err != nil {
			w.T.Fatal(err)
		}
		c.Spent(nil, contract.ModelUsage{Agent: "chat", Model: "openai/mini", InputTokens: 10})
		w.refuses("chat", "openai/*", "for openai/mini is reached")
		w.ledger.Forget("openai") // it may be set up for another one now
		w.allows("chat", "openai/*")
	})
}

func TestTheOwnerIsToldOnceADay(t *testing.T) {
	run(t, func(w *world) {
		told := func() (texts []string) {
			w.Wait(journal.LazyDelay)
			for _, e := range w.Events(contract.TopicUserNotify) {
				texts = append(texts, kerneltest.Decode[contract.UserNotify](w.T, e).Text)
			}
			return texts
		}
		w.limit(map[string]int64{"total": 100})
		w.spends("chat", "openai/mini", 79, 0)
		if n := len(told()); n != 0 {
			w.T.Errorf("told %d times below four fifths", n)
		}
		w.spends("chat", "openai/mini", 1, 0)
		w.spends("chat", "openai/mini", 1, 0)
		w.Wait(time.Second)
		w.restart()
		w.spends("chat", "openai/mini", 1, 0)
		texts := told()
		if len(texts) != 1 || !strings.Contains(texts[0], "80 % of today's limit of 100 tokens for all models is used") ||
			!strings.Contains(texts[0], "models.daily_tokens: {total: 100}") {
			w.T.Errorf("told %q", texts)
		}
		w.Wait(24 * time.Hour)
		w.spends("chat", "openai/mini", 90, 0)
		if n := len(told()); n != 2 {
			w.T.Errorf("told %d times in two days", n)
		}
	})
}

func TestOldSumsAreDeleted(t *testing.T) {
	run(t, func(w *world) {
		last := time.Now().UTC().AddDate(0, 0, -models.Kept)
		if err := w.Bus.Do(func(tx *bus.Tx) error {
			for _, day := range []time.Time{last.AddDate(0, 0, -1), last} {
				key := "usage/" + day.Format(time.DateOnly) + "/chat/openai/mini"
				if _, err := tx.KVPut(contract.KernelSource, key, []byte(`{"calls":1}`)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			w.T.Fatal(err)
		}
		kept := func(want ...string) {
			w.T.Helper()
			w.Wait(time.Second)
			var got []string
			w.Read(func(r journal.Reader) error {
				values, err := r.KVScan(contract.KernelSource, "usage/", "", 100)
				for _, v := range values {
					got = append(got, strings.Split(v.Key, "/")[1])
				}
				return err
			})
			if !slices.Equal(got, want) {
				w.T.Errorf("kept are the sums of %v, want %v", got, want)
			}
		}
		w.allows("chat", "openai/mini")
		kept(last.Format(time.DateOnly))
		w.Wait(24 * time.Hour)
		w.allows("chat", "openai/mini")
		kept()
	})
}

// A chain of events that has become too long does not keep its cost, and that
// of others, from being recorded.
func TestAnEventAtTheEndOfItsChain(t *testing.T) {
	run(t, func(w *world) {
		w.spends("chat", "openai/mini", 1, 0)
		c, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: "openai/mini", InputTokens: 1})
		if err != nil {
			w.T.Fatal(err)
		}
		c.Spent(
			&busv1.Event{Id: "e1", CorrelationId: "e1", Hop: contract.MaxHops},
			contract.ModelUsage{Agent: "chat", Session: "s1", Model: "openai/mini", InputTokens: 2},
		)
		w.sums(1, "2000-01-01 chat openai/mini 2 3 0 0")
		if n := len(w.Events(contract.TopicModelUsage)); n != 2 {
			t.Errorf("%d events tell of two completions", n)
		}
	})
}

// money has the model a/m, of which a million tokens cost 2, cached ones 0.5, and 8 for
// the output, e/m, which is paid in euros, and models without a price.
func (w *world) money(limits ...metering.Limit) {
	w.Know(func(s *directory.Snapshot) {
		s.Limits, s.Currency = limits, "USD"
		s.Price = func(u *contract.ModelUsage) {
			switch u.Model {
			case "a/m":
				u.CostMicros, u.Currency = 2*u.InputTokens-u.CachedTokens*3/2+8*u.OutputTokens, "USD"
			case "e/m":
				u.CostMicros, u.Currency = u.InputTokens, "EUR"
			}
		}
	})
}

func TestMoneyIsCounted(t *testing.T) {
	run(t, func(w *world) {
		w.money()
		c, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: "a/m", InputTokens: 10})
		if err != nil {
			w.T.Fatal(err)
		}
		c.Spent(nil, contract.ModelUsage{
			Agent: "chat", Model: "a/m", InputTokens: 1_000_000, CachedTokens: 400_000, OutputTokens: 100_000,
		})
		w.spends("chat", "local/m", 1_000_000, 1_000_000)
		w.Wait(journal.LazyDelay)
		rows, _, err := w.ledger.Rows(w.T.Context(), 1)
		if err != nil || len(rows) != 2 || rows[0].Costs["USD"] != 2_200_000 || len(rows[1].Costs) != 0 {
			w.T.Errorf("got %+v, %v", rows, err)
		}
		u := kerneltest.Decode[contract.ModelUsage](w.T, w.Events(contract.TopicModelUsage)[0])
		if u.CostMicros != 2_200_000 {
			w.T.Errorf("the event says %+v", u)
		}
	})
}

// Money of several currencies is never added: each limit counts one.
func TestCurrenciesAreCountedApart(t *testing.T) {
	run(t, func(w *world) {
		w.money(
			metering.Limit{Currency: "USD", Amount: 5_000_000, Name: "dollars", Setting: "models.limits[0]"},
			metering.Limit{Currency: "EUR", Amount: 3_000_000, Name: "euros", Setting: "models.limits[1]"},
		)
		w.spends("chat", "a/m", 2_000_000, 0)
		w.spends("chat", "e/m", 2_000_000, 0)
		w.allows("chat", "a/m")
		w.spends("chat", "e/m", 1_000_000, 0)
		w.refuses("chat", "a/m", "euros is reached (models.limits[1])")
		w.Wait(journal.LazyDelay)
		rows, _, err := w.ledger.Rows(w.T.Context(), 1)
		if err != nil || len(rows) != 2 || rows[0].Costs["USD"] != 4_000_000 || rows[1].Costs["EUR"] != 3_000_000 {
			w.T.Errorf("got %+v, %v", rows, err)
		}
	})
}

// What a provider charges counts where the model has no price; a price overrides it.
func TestReportedCostIsCounted(t *testing.T) {
	run(t, func(w *world) {
		w.money()
		for _, model := range []string{"router/m", "a/m"} {
			c, err := w.ledger.Begin(contract.ModelUsage{Agent: "chat", Model: model, InputTokens: 10})
			if err != nil {
				w.T.Fatal(err)
			}
			c.Spent(nil, contract.ModelUsage{
				Agent: "chat", Model: model, InputTokens: 1_000_000, CostMicros: 7_000, Currency: "USD",
			})
		}
		w.Wait(journal.LazyDelay)
		rows, _, err := w.ledger.Rows(w.T.Context(), 1)
		if err != nil || len(rows) != 2 || rows[0].Costs["USD"] != 2_000_000 || rows[1].Costs["USD"] != 7_000 {
			w.T.Errorf("got %+v, %v", rows, err)
		}
	})
}

func TestLimitsOfMoneyAndMonths(t *testing.T) {
	run(t, func(w *world) {
		w.money(
			metering.Limit{Monthly: true, Currency: "USD", Amount: 10_000_000, Name: "the month", Setting: "models.limits[0]"},
			metering.Limit{Agent: "chat", Currency: "USD", Amount: 4_000_000, Name: "chat", Setting: "models.limits[1]", Then: "wait"},
			metering.Limit{Monthly: true, Model: "local/m", Amount: 50, Name: "local", Setting: "models.limits[2]"},
		)
		w.spends("chat", "local/m", 40, 9)
		w.spends("chat", "a/m", 2_000_000, 0)
		w.refuses("chat", "local/m", "chat is reached (models.limits[1]): wait (UTC)")
		w.allows("orchestrator", "local/m")
		w.spends("orchestrator", "local/m", 1, 0)
		w.refuses("orchestrator", "local/m", "local is reached (models.limits[2])")
		w.Wait(24 * time.Hour)
		w.restart()
		w.allows("chat", "a/m")
		w.refuses("chat", "local/m", "local is reached")
		w.spends("chat", "a/m", 1_999_999, 0)
		w.Wait(24 * time.Hour)
		w.spends("orchestrator", "a/m", 0, 250_001)
		w.refuses("chat", "a/m", "the month is reached")
		var told []string
		w.Wait(journal.LazyDelay)
		for _, e := range w.Events(contract.TopicUserNotify) {
			told = append(told, kerneltest.Decode[contract.UserNotify](w.T, e).Text)
		}
		if len(told) != 1 || !strings.Contains(told[0], "100 % of the month is used (models.limits[0])") {
			w.T.Errorf("told %q", told)
		}
		w.Wait(29 * 24 * time.Hour) // February
		w.allows("chat", "a/m")
		w.allows("chat", "local/m")
	})
}
